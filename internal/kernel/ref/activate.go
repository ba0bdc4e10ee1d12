package ref

import (
	"math"

	"deeploop/internal/kernel"
)

// Activate: y = f(x).
func (b *Backend) Activate(y, x kernel.Buf, kind kernel.Activation) {
	kernel.CheckActivate(kind, y, x)
	defer b.flush()
	if y.Type() == kernel.Float64 {
		activate(b, out[float64](b, y, false), in[float64](b, x), kind)
	} else {
		activate(b, out[float32](b, y, false), in[float32](b, x), kind)
	}
}

func activate[S real](b *Backend, y, x []S, kind kernel.Activation) {
	b.split(len(y), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			v, _ := activation(float64(x[i]), kind)
			y[i] = S(v)
		}
	})
}

// ActivateBackward: dx = dy·f'(x).
func (b *Backend) ActivateBackward(dx, dy, x kernel.Buf, kind kernel.Activation) {
	kernel.CheckActivate(kind, dx, dy, x)
	defer b.flush()
	if dx.Type() == kernel.Float64 {
		activateBackward(b, out[float64](b, dx, false), in[float64](b, dy), in[float64](b, x), kind)
	} else {
		activateBackward(b, out[float32](b, dx, false), in[float32](b, dy), in[float32](b, x), kind)
	}
}

func activateBackward[S real](b *Backend, dx, dy, x []S, kind kernel.Activation) {
	b.split(len(dx), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			_, slope := activation(float64(x[i]), kind)
			dx[i] = S(float64(dy[i]) * slope)
		}
	})
}

// activation returns f(x) and f'(x).
func activation(x float64, kind kernel.Activation) (y, slope float64) {
	switch kind {
	case kernel.GELU:
		c := math.Sqrt(2 / math.Pi)
		t := math.Tanh(c * (x + 0.044715*x*x*x))
		// 1+t by way of e^2u keeps its digits for negative x
		half := 1 / (1 + math.Exp(-2*c*(x+0.044715*x*x*x)))
		return x * half, half + 0.5*x*(1-t*t)*c*(1+3*0.044715*x*x)
	case kernel.GELUErf:
		p := 0.5 * math.Erfc(-x/math.Sqrt2)
		return x * p, p + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
	}
	if x < 0 {
		return 0, 0
	}
	return x * x, 2 * x
}
