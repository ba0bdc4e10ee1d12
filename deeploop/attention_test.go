package deeploop

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// The weights times the values are what the reference kernel's attention
// gives, with and without rotation, causal or not, for every row and head.
func TestAttentionWeightsGiveTheAttention(t *testing.T) {
	const B, T, N, K = 2, 7, 3, 4
	r := rand.New(rand.NewPCG(1, 2))
	for _, causal := range []bool{false, true} {
		for _, rope := range []bool{false, true} {
			s := kernel.AttentionShape{B: B, T: T, N: N, K: K, Causal: causal}
			if rope {
				s.Cos, s.Sin = kernel.RopeTables(kernel.Float64, T, K, 10000)
			}
			qkv, o := kernel.Alloc(kernel.Float64, B*T*3*N*K), kernel.Alloc(kernel.Float64, B*T*N*K)
			for i := range qkv.Len() {
				qkv.SetAt(i, 2*r.NormFloat64())
			}
			ref.New(1).Attention(o, kernel.Buf{}, qkv, s)
			for b := range B {
				for n := range N {
					w := AttentionWeights(qkv, s, b, n)
					for q := range T {
						sum := 0.0
						for _, v := range w[q*T : (q+1)*T] {
							sum += float64(v)
						}
						require.InDelta(t, 1, sum, 1e-6)
						for i := range K {
							y := 0.0
							for j := range T {
								y += float64(w[q*T+j]) * qkv.At(((b*T+j)*3*N+2*N+n)*K+i)
							}
							require.InDelta(t, o.At(((b*T+q)*N+n)*K+i), y, 1e-6)
						}
						if causal && q+1 < T {
							require.Zero(t, w[q*T+q+1])
						}
					}
				}
			}
		}
	}
	require.Panics(t, func() {
		AttentionWeights(kernel.Alloc(kernel.Float32, 5), kernel.AttentionShape{B: 1, T: 1, N: 1, K: 1}, 0, 0)
	})
}
