package command

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"deeploop/internal/checkpoint"
	"deeploop/internal/kernel"
	"deeploop/internal/safetensors"
)

// tensorNorm returns the Euclidean norm of a tensor of floats as text, "-"
// for other types. The tensor is streamed: a task-embedding table can be
// larger than memory.
func tensorNorm(ck *checkpoint.Reader, t checkpoint.TensorInfo) (string, error) {
	size, value := floatReader(t.DType)
	if value == nil {
		return "-", nil
	}
	path := filepath.Join(ck.Dir(), t.Group+".safetensors")
	f, err := safetensors.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	in, info, err := f.Reader(t.Name)
	if err != nil {
		return "", err
	}
	sum := 0.0
	buf := make([]byte, 1<<16)
	for left := info.End - info.Begin; left > 0; {
		part := buf[:min(int64(len(buf)), left)]
		if _, err := io.ReadFull(in, part); err != nil {
			return "", fmt.Errorf("read tensor %s of %s: %w", t.Name, path, err)
		}
		for i := 0; i < len(part); i += size {
			v := value(part[i:])
			sum += v * v
		}
		left -= int64(len(part))
	}
	return fmt.Sprintf("%.6g", math.Sqrt(sum)), nil
}

// floatReader returns the size in bytes of a float type and how to read one;
// nil for other types.
func floatReader(dtype string) (int, func([]byte) float64) {
	switch dtype {
	case "F32":
		return 4, func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }
	case "F64":
		return 8, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
	case "BF16":
		return 2, func(b []byte) float64 { return float64(kernel.BF16(binary.LittleEndian.Uint16(b)).Float32()) }
	}
	return 0, nil
}
