package augment

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// readInt32s reads a whole int32 array, compressed or not.
func readInt32s(dir, name string) ([]int32, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	f, err := os.Open(path)
	var r io.Reader = f
	if errors.Is(err, os.ErrNotExist) {
		if g, e := os.Open(path + zstdSuffix); e == nil {
			f, err, path = g, nil, path+zstdSuffix
			d, e := zstd.NewReader(g)
			if e != nil {
				g.Close()
				return nil, e
			}
			defer d.Close()
			r = d
		}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	values, err := decodeInt32s(bufio.NewReaderSize(r, 1<<16))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return values, nil
}

// decodeInt32s reads a one-dimensional .npy array of int32 to its end.
func decodeInt32s(r io.Reader) ([]int32, error) {
	info, err := readNpyInfo(r)
	if err != nil {
		return nil, err
	}
	if info.dtype != "<i4" || len(info.shape) != 1 {
		return nil, fmt.Errorf("the array is %s of shape %v, expected <i4 with one dimension", info.dtype, info.shape)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if len(raw) != 4*info.shape[0] {
		return nil, fmt.Errorf("the array has %d bytes, expected %d for shape %v", len(raw), 4*info.shape[0], info.shape)
	}
	values := make([]int32, info.shape[0])
	for i := range values {
		values[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return values, nil
}
