package main

// shape of a product: y[M,N] = x[M,K]·W[N,K]ᵀ, dX = dy·W, dW = dyᵀ·x.
type shape struct {
	M int `json:"m"`
	N int `json:"n"`
	K int `json:"k"`
}

// shapes are those of the sizes A, B, C and C4 of bench.Configs (rows are
// batch times positions; outputs and inputs are qkv, o, gate and up, down), the
// corners of what occurs, and odd tails.
var shapes = []shape{
	{6464, 384, 128}, {6464, 128, 128}, {6464, 1024, 128}, {6464, 128, 512}, // A
	{3232, 768, 256}, {3232, 256, 256}, {3232, 1536, 256}, {3232, 256, 768}, // B
	{901, 1536, 512}, {901, 512, 512}, {901, 3072, 512}, {901, 512, 1536}, // C
	{3604, 1536, 512}, {3604, 512, 512}, {3604, 3072, 512}, {3604, 512, 1536}, // C4
	{64, 128, 128}, {64, 3072, 512}, {16384, 128, 128}, {16384, 512, 512}, {2048, 4608, 768}, {2048, 768, 4608}, {64, 512, 4608},
	{101, 389, 131}, {3333, 515, 509}, {16383, 130, 258}, {2049, 1025, 1023},
}

// large reports whether the shape has enough rows to be held to a share of the
// ceiling, and wide whether N or K is beyond what that share is stated for.
func (s shape) large() bool { return s.M >= 2048 }

func (s shape) wide() bool { return max(s.N, s.K) > 1024 }

func (s shape) flop() float64 { return 2 * float64(s.M) * float64(s.N) * float64(s.K) }
