package lm

import (
	"math"

	"deeploop/internal/kernel"
)

// direction is a point in the space of a sublayer's matrices.
type direction []kernel.Buf

func (d direction) clone() direction {
	var e direction
	for _, b := range d {
		c := kernel.Alloc(b.Type(), b.Len())
		copy(c.Bytes(), b.Bytes())
		e = append(e, c)
	}
	return e
}

func (d direction) clear() {
	for _, b := range d {
		clear(b.Bytes())
	}
}

// add is d += s·e.
func (d direction) add(s float64, e direction) {
	for i, b := range d {
		addScaled(b, b, s, e[i])
	}
}

// norm is the Euclidean norm of all elements.
func (d direction) norm() float64 { return norm(d...) }

// unit divides by the norm.
func (d direction) unit() {
	n := d.norm()
	for _, b := range d {
		zip(b, b, b, func(x, _ float64) float64 { return x / n })
	}
}

func norm(bufs ...kernel.Buf) float64 {
	s := 0.0
	for _, b := range bufs {
		s += dot(b, b)
	}
	return math.Sqrt(s)
}

// addScaled is z = x + s·y; z may be x or y.
func addScaled(z, x kernel.Buf, s float64, y kernel.Buf) {
	zip(z, x, y, func(x, y float64) float64 { return x + s*y })
}

// quotient is z = (plus-minus)/2h; z may be one of them.
func quotient(z, plus, minus kernel.Buf, h float64) {
	zip(z, plus, minus, func(p, m float64) float64 { return (p - m) / (2 * h) })
}

// zip is z[i] = f(x[i], y[i]).
func zip(z, x, y kernel.Buf, f func(x, y float64) float64) {
	if z.Type() == kernel.Float32 {
		zipOf(z.Float32s(), x.Float32s(), y.Float32s(), f)
		return
	}
	zipOf(z.Float64s(), x.Float64s(), y.Float64s(), f)
}

func zipOf[T float32 | float64](z, x, y []T, f func(x, y float64) float64) {
	for i := range z {
		z[i] = T(f(float64(x[i]), float64(y[i])))
	}
}
