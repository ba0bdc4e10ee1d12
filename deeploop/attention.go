package deeploop

import (
	"math"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/ops"
)

// ForwardSeen is Forward of whole rows that shows, block by block, the packed
// qkv [B*T, 3*N*K] that attention takes, behind QK-norm. Who wants to read
// them after a run pins them (graph.Builder.Build).
func (s *Stack) ForwardSeen(b *graph.Builder, x *graph.Node, shape kernel.AttentionShape, see func(block int, qkv *graph.Node)) *graph.Node {
	shape.Queries = 0
	for i, bl := range s.Blocks {
		x = bl.forward(b, x, s.Residual, shape, func(qkv *graph.Node) *graph.Node {
			see(i, qkv)
			return ops.Attention(b, qkv, shape)
		})
	}
	if s.closes {
		x = ops.ResidualNorm(b, x, nil, s.FinalGain, 1, s.Residual.Eps)
	}
	return x
}

// AttentionWeights is softmax(q kᵀ/√K) of one head, what ops.Attention weighs
// values with: [T, T] for batch row b, from the packed qkv [B*T, 3*N*K] that it
// takes. Every row sums to 1; with s.Causal what a query does not see is 0. It
// is for looking at one example: kernels never store these numbers, and this
// computes them again in float64, one head at a time.
func AttentionWeights(qkv kernel.Buf, s kernel.AttentionShape, b, head int) []float32 {
	if qkv.Len() != s.B*s.T*3*s.N*s.K || b < 0 || b >= s.B || head < 0 || head >= s.N {
		panic("deeploop: attention weights of a shape that differs from its input")
	}
	q, k := make([]float64, s.T*s.K), make([]float64, s.T*s.K)
	for t := range s.T {
		at := ((b*s.T+t)*3*s.N + head) * s.K
		for i := range s.K {
			q[t*s.K+i], k[t*s.K+i] = qkv.At(at+i), qkv.At(at+s.N*s.K+i)
		}
	}
	rotate(q, s)
	rotate(k, s)
	weights := make([]float32, s.T*s.T)
	scores := make([]float64, s.T)
	for t := range s.T {
		seen := s.T
		if s.Causal {
			seen = t + 1
		}
		softmax(scores[:seen], q[t*s.K:(t+1)*s.K], k)
		for j, w := range scores[:seen] {
			weights[t*s.T+j] = float32(w)
		}
	}
	return weights
}

// softmax fills p with softmax(q·k_j/√K) over the first len(p) rows of k.
func softmax(p, q, k []float64) {
	top := math.Inf(-1)
	for j := range p {
		dot := 0.0
		for i, v := range q {
			dot += v * k[j*len(q)+i]
		}
		p[j] = dot / math.Sqrt(float64(len(q)))
		top = max(top, p[j])
	}
	sum := 0.0
	for j := range p {
		p[j] = math.Exp(p[j] - top)
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
}

// rotate turns x [T, K] by the rotary angles, see kernel.AttentionShape.
func rotate(x []float64, s kernel.AttentionShape) {
	if s.Cos.Absent() {
		return
	}
	half := s.K / 2
	for t := range s.T {
		for i := range half {
			cos, sin := s.Cos.At(t*half+i), s.Sin.At(t*half+i)
			a, c := x[t*s.K+i], x[t*s.K+half+i]
			x[t*s.K+i], x[t*s.K+half+i] = a*cos-c*sin, c*cos+a*sin
		}
	}
}
