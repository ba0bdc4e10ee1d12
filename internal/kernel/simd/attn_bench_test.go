//go:build cgo

package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"deeploop/internal/kernel"
)

// BenchmarkAttention measures attention at the model's shapes, forward and
// backward, at every level and type: the rate of its own matrix work in
// GFLOP/s (4·B·N·T²·K forward, 2.5 times that backward, half of both when
// causal), its share of the product rate that the same backend reaches in
// registers, probed before each call, and the time as a multiple of what its
// matrix work takes at the rate of a large Linear of the same backend.
func BenchmarkAttention(b *testing.B) {
	eachLevelAndType(func(l Level, dt kernel.DType) {
		for _, s := range []kernel.AttentionShape{
			{B: 64, T: 101, N: 4, K: 32}, {B: 32, T: 101, N: 4, K: 64}, {B: 1, T: 901, N: 8, K: 64}, {B: 4, T: 901, N: 8, K: 64},
			{B: 1, T: 901, N: 8, K: 64, Causal: true}, {B: 64, T: 101, N: 4, K: 32, Queries: 1},
		} {
			s.Cos, s.Sin = kernel.RopeTables(kernel.Float32, s.T, s.K, 10000)
			benchmarkAttention(b, l, dt, s)
		}
	})
}

func benchmarkAttention(b *testing.B, l Level, dt kernel.DType, s kernel.AttentionShape) {
	r := rand.New(rand.NewPCG(1, 1))
	n := s.B * s.T * s.N * s.K
	asked := n / s.T * s.Asking()
	qkv, do := fill(r, kernel.Alloc(dt, 3*n)), fill(r, kernel.Alloc(dt, n))
	o, dqkv, lse := kernel.Alloc(dt, asked), kernel.Alloc(dt, 3*n), kernel.Alloc(kernel.Float32, s.B*s.N*s.Asking())
	flops := 4 * float64(asked) * float64(s.T)
	if s.Causal {
		flops /= 2
	}
	const m, d = 2048, 512 // of the Linear compared with
	x, y := fill(r, kernel.Alloc(dt, m*d)), kernel.Alloc(dt, m*d)
	w := &kernel.Weight{Data: fill(r, kernel.Alloc(kernel.Float32, d*d)), Rows: d, Cols: d}
	for _, op := range []struct {
		name  string
		flops float64
		run   func(be *Backend)
	}{
		{"forward", flops, func(be *Backend) { be.Attention(o, lse, qkv, s) }},
		{"backward", 2.5 * flops, func(be *Backend) { be.AttentionBackward(dqkv, do, o, qkv, lse, s) }},
	} {
		if op.name == "backward" && s.Queries > 0 {
			continue
		}
		for _, threads := range []int{1, 2} {
			name := fmt.Sprintf("%v/%v/%s/B=%d,T=%d,N=%d,K=%d,causal=%v,queries=%d/threads=%d", l, dt, op.name, s.B, s.T, s.N, s.K, s.Causal, s.Asking(), threads)
			b.Run(name, func(b *testing.B) {
				be, err := Open(l, threads)
				if err != nil {
					b.Fatal(err)
				}
				defer be.Close()
				be.Attention(o, lse, qkv, s)
				op.run(be)
				be.Linear(y, x, w)
				rounds := 1 + int(op.flops/65536/float64(threads)) // about as long as the call
				rate, linear := timeBesideProbe(b, be, dt, rounds, op.flops, func() { op.run(be) }, func() { be.Linear(y, x, w) })
				b.ReportMetric(2*m*d*d/linear/rate, "times-GEMM")
			})
		}
	}
}
