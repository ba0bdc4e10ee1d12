package command

import (
	"encoding/binary"
	"fmt"
	"math"

	"deeploop/internal/checkpoint"
	"deeploop/internal/kernel"
)

// tensorNorm returns the Euclidean norm of a tensor of floats as text, "-"
// for other types, and an error for a damaged one. The tensor is streamed: a
// task-embedding table can be larger than memory.
func tensorNorm(ck *checkpoint.Reader, t checkpoint.TensorInfo) (string, error) {
	size, value := floatReader(t.DType)
	sum := 0.0
	err := ck.Scan(t.Group, t.Name, func(part []byte) {
		for i := 0; value != nil && i < len(part); i += size {
			v := value(part[i:])
			sum += v * v
		}
	})
	switch {
	case err != nil:
		return "", err
	case value == nil:
		return "-", nil
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
