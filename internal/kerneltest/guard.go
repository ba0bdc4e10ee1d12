package kerneltest

import (
	"math"
	"unsafe"

	"deeploop/internal/kernel"
)

// guarded is a buffer between two guards, which must not change. Under the
// address sanitizer a call that reads them is found out as well.
type guarded struct {
	buf   kernel.Buf
	ints  []int32
	raw   []byte // guards and buffer
	lo    int    // first byte of the buffer in raw
	hi    int
	unmap func() // gives memory of atEnd back
}

// atEnd in place of an offset: the buffer ends where readable memory ends, so
// that one byte read beyond it, by whatever instruction, ends the process.
const atEnd = -1

func guardByte(i int) byte { return byte(0xa5 ^ i) }

// newGuarded makes a buffer that begins offset elements behind an aligned
// address, or one that lies atEnd.
func newGuarded(k Kind, t kernel.DType, n, offset int) *guarded {
	size := t.Size()
	if k == Int {
		size = 4
	}
	g := &guarded{unmap: func() {}}
	if offset == atEnd {
		g.lo, g.hi = guardBytes, guardBytes+n*size
		g.raw, g.unmap = fenced(g.hi)
	} else {
		g.lo = guardBytes + offset*size
		g.hi = g.lo + n*size
		g.raw = kernel.Alloc(kernel.Float64, (g.hi+guardBytes+7)/8).Bytes()
	}
	for i := range g.raw {
		g.raw[i] = guardByte(i)
	}
	switch p := unsafe.Add(unsafe.Pointer(&g.raw[0]), g.lo); {
	case n == 0:
	case k == Int:
		g.ints = unsafe.Slice((*int32)(p), n)
	default:
		g.buf = view(p, t, n)
	}
	clear(g.raw[g.lo:g.hi])
	poison(g.raw[:g.lo])
	poison(g.raw[g.hi:])
	return g
}

// free ends the life of the buffer.
func (g *guarded) free() {
	unpoison(g.raw)
	g.unmap()
}

// intact reports whether both guards are as they were. Reads of the buffer
// beyond its bounds are no longer found out afterwards.
func (g *guarded) intact() bool {
	unpoison(g.raw)
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

// Overlong returns n elements of which the last beyond lie outside the buffer:
// at a fence, or where the address sanitizer looks. It is for tests of such
// tests.
func Overlong(t kernel.DType, n, beyond int, fence bool) kernel.Buf {
	offset := 0
	if fence {
		offset = atEnd
	}
	g := newGuarded(Act, t, n-beyond, offset)
	return view(unsafe.Add(unsafe.Pointer(&g.raw[0]), g.lo), t, n)
}
