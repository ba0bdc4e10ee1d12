package deeploop

import "math"

// Rule is the residual parameterisation alpha = (2N)^P, beta = (8N)^-P
// (DeepLoop, section A.2): alpha multiplies the skip at every forward pass,
// beta multiplies matrices once, at initialisation.
type Rule struct {
	// P is the exponent: 1/2 for DeepLoop, 1/4 for DeepNorm, 0 for none.
	P float64
	// N is the number of executed blocks that count, stored blocks times loops.
	N int
}

// Alpha returns (2N)^P.
func (r Rule) Alpha() float64 { return math.Pow(2*float64(r.N), r.P) }

// Beta returns (8N)^-P.
func (r Rule) Beta() float64 { return math.Pow(8*float64(r.N), -r.P) }

// Bound returns visits·kappa·(beta/alpha)², which bounds how far one update
// moves the output (A.3): visits is M = 2N for untied blocks with kappa 1, and
// kappa is R for R aligned visits of tied ones.
func (r Rule) Bound(visits int, kappa float64) float64 {
	q := r.Beta() / r.Alpha()
	return float64(visits) * kappa * q * q
}
