package ref

import (
	"math"

	"deeploop/internal/kernel"
)

// SwiGLU: y = silu(gate) ⊙ up.
func (b *Backend) SwiGLU(y, gu kernel.Buf, f int) {
	m := kernel.CheckSwiGLU(y, f, gu)
	defer b.flush()
	if y.Type() == kernel.Float64 {
		swiglu(b, out[float64](b, y, false), in[float64](b, gu), m, f)
	} else {
		swiglu(b, out[float32](b, y, false), in[float32](b, gu), m, f)
	}
}

func swiglu[S real](b *Backend, y, gu []S, m, f int) {
	b.split(m, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			for i := range f {
				u, v := float64(gu[r*2*f+i]), float64(gu[r*2*f+f+i])
				y[r*f+i] = S(u / (1 + math.Exp(-u)) * v)
			}
		}
	})
}

// SwiGLUBackward: with σ = 1/(1+e^-u), dgate = dy·up·σ(1+u(1−σ)), dup = dy·uσ.
func (b *Backend) SwiGLUBackward(dgu, dy, gu kernel.Buf, f int) {
	m := kernel.CheckSwiGLU(dy, f, gu, dgu)
	defer b.flush()
	if dy.Type() == kernel.Float64 {
		swigluBackward(b, out[float64](b, dgu, false), in[float64](b, dy), in[float64](b, gu), m, f)
	} else {
		swigluBackward(b, out[float32](b, dgu, false), in[float32](b, dy), in[float32](b, gu), m, f)
	}
}

func swigluBackward[S real](b *Backend, dgu, dy, gu []S, m, f int) {
	b.split(m, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			for i := range f {
				at := r*2*f + i
				u, v, g := float64(gu[at]), float64(gu[at+f]), float64(dy[r*f+i])
				sig := 1 / (1 + math.Exp(-u))
				dgu[at] = S(g * v * sig * (1 + u*(1-sig)))
				dgu[at+f] = S(g * u * sig)
			}
		}
	})
}

// Add: dst = a + b (+ c), rounded once.
func (b *Backend) Add(dst, x, y, z kernel.Buf) {
	kernel.CheckSame(dst, x, y, z)
	defer b.flush()
	if dst.Type() == kernel.Float64 {
		add(b, out[float64](b, dst, false), in[float64](b, x), in[float64](b, y), in[float64](b, z))
	} else {
		add(b, out[float32](b, dst, false), in[float32](b, x), in[float32](b, y), in[float32](b, z))
	}
}

func add[S real](b *Backend, dst, x, y, z []S) {
	b.split(len(dst), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			s := float64(x[i]) + float64(y[i])
			if z != nil {
				s += float64(z[i])
			}
			dst[i] = S(s)
		}
	})
}

// Convert copies with a change of element type. Float64 reaches BFloat16 by
// way of float32.
func (b *Backend) Convert(dst, src kernel.Buf) {
	kernel.CheckConvert(dst, src)
	if dst.Absent() {
		return
	}
	if dst.Type() == src.Type() {
		copy(dst.Bytes(), src.Bytes())
		return
	}
	defer b.flush()
	switch {
	case dst.Type() == kernel.Float64:
		convert(b, dst.Float64s(), in[float32](b, src))
	case src.Type() == kernel.Float64:
		convert(b, out[float32](b, dst, false), src.Float64s())
	default:
		convert(b, out[float32](b, dst, false), in[float32](b, src))
	}
}

func convert[D, S real](b *Backend, dst []D, src []S) {
	b.split(len(dst), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			dst[i] = D(src[i])
		}
	})
}
