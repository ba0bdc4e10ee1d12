//go:build cgo

package pick

import (
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/simd"
)

func level(name string) simd.Level {
	for _, l := range simd.Levels {
		if l.String() == name {
			return l
		}
	}
	panic("pick: not a kernel level")
}

// missing says what keeps a kernel from running here, "" when it runs.
func missing(name string) string {
	if name == "ref" {
		return ""
	}
	return simd.Missing(level(name))
}

func open(name string, threads int) (kernel.Backend, error) { return simd.Open(level(name), threads) }

// bf16Unit names what makes bf16 products fast under a kernel, "" without.
func bf16Unit(name string) string {
	switch {
	case name == "amx":
		return "bf16 tiles"
	case name == "avx512" && simd.HasBF16Dot():
		return "bf16 dot products"
	}
	return ""
}
