package tensorboard

import (
	"encoding/binary"
	"hash/crc32"
)

// castagnoli is the polynomial of CRC-32C (RFC 3720, appendix B.4).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskDelta is added to a rotated checksum.
const maskDelta = 0xa282ead8

// masked is the checksum of TFRecord: CRC-32C, rotated right by 15 bits, plus a
// constant, so that checksums of data that holds checksums are no special case.
func masked(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + maskDelta
}

// appendRecord appends one record, all little endian: the length (8 bytes), its
// masked checksum (4), the data, their masked checksum (4).
func appendRecord(dst, data []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(data)))
	dst = binary.LittleEndian.AppendUint32(dst, masked(dst[at:]))
	dst = append(dst, data...)
	return binary.LittleEndian.AppendUint32(dst, masked(data))
}
