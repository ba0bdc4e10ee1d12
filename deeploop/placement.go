package deeploop

// Placement says where a sublayer's norms stand (architectures.md A.9).
type Placement string

const (
	// PostNorm: x <- norm(x + f(x)), the published HRM block.
	PostNorm Placement = "postnorm"
	// DeepNorm: x <- norm(alpha x + f(x)).
	DeepNorm Placement = "deepnorm"
	// DeepLoop: x <- norm(alpha x + f(norm(x))), Eq. 7; the norm on the
	// branch's input can be switched off.
	DeepLoop Placement = "deeploop"
	// PreNorm: x <- x + f(norm(x)), with a closing norm after the last block.
	PreNorm Placement = "prenorm"
)

// Placements are the names of all of them.
var Placements = []string{string(PostNorm), string(DeepNorm), string(DeepLoop), string(PreNorm)}

// Scaled reports whether the residual rule (alpha, beta) applies.
func (p Placement) Scaled() bool { return p == DeepNorm || p == DeepLoop }

// Defaults returns the exponent p and the inner norm that a placement comes
// with (architectures.md A.9): deeploop 1/2 with, deepnorm 1/4 without, the
// others 0 without.
func (p Placement) Defaults() (exponent float64, innerNorm bool) {
	switch p {
	case DeepLoop:
		return 0.5, true
	case DeepNorm:
		return 0.25, false
	}
	return 0, false
}
