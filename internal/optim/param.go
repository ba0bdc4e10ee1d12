package optim

import (
	"fmt"
	"math"

	"deeploop/internal/kernel"
)

// Param is a view of one trained tensor: weight, gradient and the two moments
// of the Adam family, all of one length and type (Float32 or Float64).
type Param struct {
	Name       string
	W, G, M, V kernel.Buf
	// NoDecay keeps AdamW from decaying the tensor: gains, biases.
	NoDecay bool
	// Wrote, where set, is called after every write to W, so that the owner
	// can mark packed copies as stale (kernel.Weight.Version).
	Wrote func()
}

// NewParam returns a view of w and its gradient with fresh zero moments.
func NewParam(name string, w, g kernel.Buf, wrote func()) Param {
	return Param{
		Name: name, W: w, G: g, Wrote: wrote,
		M: kernel.Alloc(w.Type(), w.Len()),
		V: kernel.Alloc(w.Type(), w.Len()),
	}
}

func (p *Param) wrote() {
	if p.Wrote != nil {
		p.Wrote()
	}
}

// NonFinite reports a NaN or an infinity.
type NonFinite struct {
	What   string  // loss, gradient, weight, ...
	Tensor string  // name; empty for a scalar
	Index  int     // first offending element, -1 for a scalar
	Value  float64 // what it holds
}

func (e *NonFinite) Error() string {
	if e.Tensor == "" {
		return fmt.Sprintf("%s is %v", e.What, e.Value)
	}
	return fmt.Sprintf("%s of %s is %v at element %d", e.What, e.Tensor, e.Value, e.Index)
}

// Finite returns a *NonFinite error when x holds a NaN or an infinity. It
// reads x once, and a second time only to find the element.
func Finite(b kernel.Backend, what, name string, x kernel.Buf) error {
	_, err := sumSquares(b, what, name, x)
	return err
}

// GradNorm returns the norm of all gradients together (their global L2 norm,
// the number that clipping compares with), or a *NonFinite error that names
// the first gradient with a NaN or an infinity.
func GradNorm(b kernel.Backend, params []Param) (float64, error) {
	total := 0.0
	for i := range params {
		s, err := sumSquares(b, "gradient", params[i].Name, params[i].G)
		if err != nil {
			return 0, err
		}
		total += s
	}
	return math.Sqrt(total), nil
}

// FiniteWeights checks the weights of all params.
func FiniteWeights(b kernel.Backend, params []Param) error {
	for i := range params {
		if err := Finite(b, "weight", params[i].Name, params[i].W); err != nil {
			return err
		}
	}
	return nil
}

// FiniteState checks everything that a later step starts from: weights, moments
// and, where there is an ema, averages.
func FiniteState(b kernel.Backend, params []Param, ema *EMA) error {
	if err := FiniteWeights(b, params); err != nil {
		return err
	}
	for i := range params {
		p := &params[i]
		for _, moment := range []kernel.Buf{p.M, p.V} {
			if err := Finite(b, "moment", p.Name, moment); err != nil {
				return err
			}
		}
		if ema != nil {
			if err := Finite(b, "average", p.Name, ema.Avg[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func sumSquares(b kernel.Backend, what, name string, x kernel.Buf) (float64, error) {
	s := b.SumSquares(x)
	if !math.IsNaN(s) && !math.IsInf(s, 0) {
		return s, nil
	}
	for i := range x.Len() {
		if v := x.At(i); math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, &NonFinite{What: what, Tensor: name, Index: i, Value: v}
		}
	}
	return s, nil // huge, but finite: the sum overflowed
}
