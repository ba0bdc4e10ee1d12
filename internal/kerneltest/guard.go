package kerneltest

import (
	"math"

	"deeploop/internal/kernel"
)

// guardBytes lie on either side of every buffer and must not change.
const guardBytes = 64

// guarded is a buffer between two guards.
type guarded struct {
	buf  kernel.Buf
	ints []int32
	raw  []byte // guards and buffer
	lo   int    // first byte of the buffer in raw
	hi   int
}

func guardByte(i int) byte { return byte(0xa5 ^ i) }

func newGuarded(k Kind, t kernel.DType, n, offset int) *guarded {
	size := t.Size()
	if k == Int {
		size = 4
	}
	pad := guardBytes + offset*size
	total := (pad + n*size + guardBytes + 7) / 8 * 8
	g := &guarded{lo: pad, hi: pad + n*size}
	all := kernel.Alloc(kernel.Float64, total/8)
	g.raw = all.Bytes()
	for i := range g.raw {
		g.raw[i] = guardByte(i)
	}
	switch {
	case n == 0:
	case k == Int:
		g.ints = asInts(all, pad, n)
	default:
		g.buf = view(all, t, pad, n)
	}
	clear(g.raw[g.lo:g.hi])
	return g
}

// intact reports whether both guards are as they were.
func (g *guarded) intact() bool {
	for i, b := range g.raw {
		if (i < g.lo || i >= g.hi) && b != guardByte(i) {
			return false
		}
	}
	return true
}

// bytes returns the buffer's own memory.
func (g *guarded) bytes() []byte { return g.raw[g.lo:g.hi] }

// rms returns the root of the mean square of b's finite elements.
func rms(b kernel.Buf) float64 {
	var sum float64
	for i := range b.Len() {
		if x := b.At(i); !math.IsInf(x, 0) && !math.IsNaN(x) {
			sum += x * x
		}
	}
	if b.Absent() {
		return 0
	}
	return math.Sqrt(sum / float64(b.Len()))
}
