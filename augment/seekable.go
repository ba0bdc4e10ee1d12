package augment

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Compressed arrays are ordinary zstd files made of many frames and, last, a
// skippable frame with the sizes of the others: the "seekable format" of the
// zstd project. Any zstd tool unpacks them, and a reader can unpack one frame.

const (
	zstdSuffix    = ".zst"
	seekMagic     = 0x8F92EAB1
	skippableID   = 0x184D2A5E
	seekFooter    = 9 // number of frames, descriptor, magic
	seekHead      = 8 // skippable magic and size
	seekEntry     = 8 // compressed and uncompressed size
	maxSeekFrames = 1 << 27
)

// plainName is the name of a file without compression.
func plainName(name string) string { return strings.TrimSuffix(name, zstdSuffix) }

// seekFrame is one frame: its place in the file and in the content.
type seekFrame struct {
	at, content int64
	size, plain uint32
}

// appendSeekTable encodes the skippable frame for frames.
func appendSeekTable(b []byte, frames []seekFrame) []byte {
	b = binary.LittleEndian.AppendUint32(b, skippableID)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frames)*seekEntry+seekFooter))
	for _, f := range frames {
		b = binary.LittleEndian.AppendUint32(b, f.size)
		b = binary.LittleEndian.AppendUint32(b, f.plain)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frames)))
	b = append(b, 0) // no checksums here: each frame has its own
	return binary.LittleEndian.AppendUint32(b, seekMagic)
}

// readSeekTable reads the frames of a file of the given size.
func readSeekTable(r io.ReaderAt, size int64) ([]seekFrame, error) {
	var foot [seekFooter]byte
	if size < seekFooter+seekHead {
		return nil, fmt.Errorf("%d bytes are too few for a seekable zstd file", size)
	}
	if _, err := r.ReadAt(foot[:], size-seekFooter); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(foot[:]))
	if binary.LittleEndian.Uint32(foot[5:]) != seekMagic || foot[4] != 0 || n > maxSeekFrames || n*seekEntry+seekFooter+seekHead > size {
		return nil, fmt.Errorf("no seek table at the end, expected a seekable zstd file as build-data writes")
	}
	raw := make([]byte, n*seekEntry)
	tableAt := size - seekFooter - int64(len(raw))
	if _, err := r.ReadAt(raw, tableAt); err != nil {
		return nil, err
	}
	frames := make([]seekFrame, n)
	var at, content int64
	for i := range frames {
		f := seekFrame{at: at, content: content, size: binary.LittleEndian.Uint32(raw[i*seekEntry:]), plain: binary.LittleEndian.Uint32(raw[i*seekEntry+4:])}
		frames[i] = f
		at += int64(f.size)
		content += int64(f.plain)
	}
	if at != tableAt-seekHead {
		return nil, fmt.Errorf("seek table covers %d bytes, expected %d", at, tableAt-seekHead)
	}
	return frames, nil
}

// newFrameEncoder returns an encoder for EncodeAll. Canvases are mostly runs,
// so the fast levels lose little.
func newFrameEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic("augment: zstd encoder options")
	}
	return e
}

func newFrameDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<31))
	if err != nil {
		panic("augment: zstd decoder options")
	}
	return d
}
