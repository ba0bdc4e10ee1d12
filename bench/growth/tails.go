package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/profile"
)

// tail compares an operation at size N+1 with the same at N.
type tail struct {
	Op    string  `json:"op"`
	Dim   string  `json:"dimension"` // the size that grows, and the others
	N     int     `json:"n"`
	Ratio float64 `json:"ratio"` // median over pairs of time at N+1 over time at N
	Work  float64 `json:"work"`  // how the operations or bytes grow
}

// offsets from a multiple of every vector and tile width: into the first
// incomplete vector, at half and at full widths, and out of it.
var offsets = []int{0, 1, 3, 7, 8, 15, 16, 31}

// growing is an operation with one size that grows. make returns a call at
// size n on new memory; power is how work depends on n.
type growing struct {
	op, dim string
	bases   []int
	power   float64
	make    func(be kernel.Backend, act kernel.DType, n int) func()
}

// timeTails compares every operation at every base and offset.
func timeTails(choice pick.Choice, rounds int) (all []tail) {
	for _, g := range operations() {
		fmt.Fprintf(os.Stderr, "%s over %s\n", g.op, g.dim)
		for _, base := range g.bases {
			for _, o := range offsets {
				n := base + o
				r := ratio(g.make(choice.Backend, choice.Precision, n), g.make(choice.Backend, choice.Precision, n+1), rounds)
				all = append(all, tail{g.op, g.dim, n, r, math.Pow(float64(n+1)/float64(n), g.power)})
			}
		}
	}
	return all
}

// ratio alternates two calls. Short ones are repeated until they fill sample.
func ratio(small, large func(), rounds int) float64 {
	const sample = 200 * time.Microsecond
	small()
	large()
	start := time.Now()
	small()
	repeats := 1 + int(sample/max(time.Since(start), time.Nanosecond))
	timed := func(f func()) float64 {
		start := time.Now()
		for range repeats {
			f()
		}
		return time.Since(start).Seconds()
	}
	ratios := make([]float64, rounds)
	for i := range ratios {
		if i%2 == 0 {
			s := timed(small)
			ratios[i] = timed(large) / s
		} else {
			l := timed(large)
			ratios[i] = l / timed(small)
		}
	}
	return profile.Median(ratios)
}

func buffer(t kernel.DType, n int) kernel.Buf {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := kernel.Alloc(t, n)
	for i := range n {
		b.SetAt(i, r.Float64()-0.5)
	}
	return b
}

func linear(be kernel.Backend, act kernel.DType, m, n, k int) func() {
	y, x, w := kernel.Alloc(act, m*n), buffer(act, m*k), &kernel.Weight{Data: buffer(act.Master(), n*k), Rows: n, Cols: k, Version: 1}
	return func() { be.Linear(y, x, w) }
}

func linearDX(be kernel.Backend, act kernel.DType, m, n, k int) func() {
	dx, dy, w := kernel.Alloc(act, m*k), buffer(act, m*n), &kernel.Weight{Data: buffer(act.Master(), n*k), Rows: n, Cols: k, Version: 1}
	return func() { be.LinearDX(dx, dy, w, false) }
}

func linearDW(be kernel.Backend, act kernel.DType, m, n, k int) func() {
	dw, dy, x := kernel.Alloc(act.Master(), n*k), buffer(act, m*n), buffer(act, m*k)
	return func() { be.LinearDW(dw, dy, x, n, k, false) }
}

func attention(backward bool, t, k func(n int) int) func(kernel.Backend, kernel.DType, int) func() {
	return func(be kernel.Backend, act kernel.DType, n int) func() {
		s := kernel.AttentionShape{B: 4, T: t(n), N: 4, K: k(n)}
		if s.K%2 == 0 {
			s.Cos, s.Sin = kernel.RopeTables(act.Master(), s.T, s.K, 10000)
		}
		size := s.B * s.T * s.N * s.K
		qkv, o, lse := buffer(act, 3*size), kernel.Alloc(act, size), kernel.Alloc(act.Master(), s.B*s.N*s.T)
		if !backward {
			return func() { be.Attention(o, lse, qkv, s) }
		}
		be.Attention(o, lse, qkv, s)
		dqkv, do := kernel.Alloc(act, 3*size), buffer(act, size)
		return func() { be.AttentionBackward(dqkv, do, o, qkv, lse, s) }
	}
}

func norm(backward bool, rows, width func(n int) int) func(kernel.Backend, kernel.DType, int) func() {
	return func(be kernel.Backend, act kernel.DType, n int) func() {
		r, d := rows(n), width(n)
		x, z, y, rstd := buffer(act, r*d), buffer(act, r*d), kernel.Alloc(act, r*d), kernel.Alloc(act.Master(), r)
		forward := func() { be.ResidualNorm(y, rstd, x, z, kernel.Buf{}, 1, 1e-5, d) }
		if !backward {
			return forward
		}
		forward()
		dx := kernel.Alloc(act, r*d)
		return func() {
			be.ResidualNormBackward(dx, kernel.Buf{}, kernel.Buf{}, z, y, rstd, kernel.Buf{}, kernel.Buf{}, kernel.Buf{}, 1, d)
		}
	}
}

func swiglu(be kernel.Backend, act kernel.DType, m, f int, backward bool) func() {
	y, gu := buffer(act, m*f), buffer(act, 2*m*f)
	if !backward {
		return func() { be.SwiGLU(y, gu, f) }
	}
	dgu := kernel.Alloc(act, 2*m*f)
	return func() { be.SwiGLUBackward(dgu, y, gu, f) }
}

func crossEntropy(be kernel.Backend, act kernel.DType, rows, v int, backward bool) func() {
	logits, labels := buffer(act.Master(), rows*v), make([]int32, rows)
	for i := range labels {
		labels[i] = int32(i % v)
	}
	if !backward {
		loss, pred := make([]float64, rows), make([]int32, rows)
		return func() { be.CrossEntropy(loss, pred, logits, labels, v, kernel.Stablemax) }
	}
	scale, d := make([]float64, rows), kernel.Alloc(act, rows*v)
	for i := range scale {
		scale[i] = 1
	}
	return func() { be.CrossEntropyBackward(d, logits, labels, scale, v, kernel.Stablemax) }
}

func qkNorm(backward bool) func(kernel.Backend, kernel.DType, int) func() {
	return func(be kernel.Backend, act kernel.DType, n int) func() {
		s := kernel.AttentionShape{B: 1, T: 1024, N: 6, K: n}
		size := 3 * s.T * s.N * s.K
		qkv, y, rstd, gain := buffer(act, size), kernel.Alloc(act, size), kernel.Alloc(act.Master(), 2*s.T*s.N), buffer(act.Master(), n)
		forward := func() { be.QKNorm(y, rstd, qkv, gain, gain, s, 1e-5) }
		if !backward {
			return forward
		}
		forward()
		dqkv, dgq, dgk := kernel.Alloc(act, size), kernel.Alloc(act.Master(), n), kernel.Alloc(act.Master(), n)
		return func() { be.QKNormBackward(dqkv, dgq, dgk, y, qkv, rstd, gain, gain, s) }
	}
}

func activate(backward bool) func(kernel.Backend, kernel.DType, int) func() {
	return func(be kernel.Backend, act kernel.DType, n int) func() {
		x, y := buffer(act, n), buffer(act, n)
		if !backward {
			return func() { be.Activate(y, x, kernel.GELU) }
		}
		dx := kernel.Alloc(act, n)
		return func() { be.ActivateBackward(dx, y, x, kernel.GELU) }
	}
}

func embed(backward bool) func(kernel.Backend, kernel.DType, int) func() {
	return func(be kernel.Backend, act kernel.DType, n int) func() {
		a := kernel.EmbedArgs{IDs: make([]int32, 6400), Batch: 64, T: 100, D: n, Vocab: 12, Scale: 1}
		for i := range a.IDs {
			a.IDs[i] = int32(i % a.Vocab)
		}
		table, y := buffer(act.Master(), a.Vocab*n), buffer(act, len(a.IDs)*n)
		if backward {
			return func() { be.EmbedBackward(table, kernel.Buf{}, kernel.Buf{}, y, a, false) }
		}
		a.Table = table
		return func() { be.Embed(y, a) }
	}
}

// cached is one new position over n past ones.
func cached(be kernel.Backend, act kernel.DType, n int) func() {
	s := kernel.AttentionShape{B: 1, T: 1, N: 12, K: 64}
	size := s.N * s.K
	o, qkv, keys, values := kernel.Alloc(act, size), buffer(act, 3*size), buffer(act, (n+1)*size), buffer(act, (n+1)*size)
	return func() { be.AttentionCached(o, qkv, keys, values, n, s) }
}

// flat are the kernels over plain arrays.
func flat(name string, call func(be kernel.Backend, a, b, c, d kernel.Buf)) growing {
	return growing{name, "length", []int{4096, 65536}, 1, func(be kernel.Backend, _ kernel.DType, n int) func() {
		a, b, c, d := buffer(kernel.Float32, n), buffer(kernel.Float32, n), buffer(kernel.Float32, n), kernel.Alloc(kernel.Float32, n)
		return func() { call(be, a, b, c, d) }
	}}
}

func operations() []growing {
	fixed := func(v int) func(int) int { return func(int) int { return v } }
	grow := func(n int) int { return n }
	var all []growing
	for _, p := range []struct {
		name string
		make func(be kernel.Backend, act kernel.DType, m, n, k int) func()
	}{{"Linear", linear}, {"LinearDX", linearDX}, {"LinearDW", linearDW}} {
		all = append(all,
			growing{p.name, "M (N 384, K 128)", []int{256, 1024}, 1, func(be kernel.Backend, act kernel.DType, n int) func() { return p.make(be, act, n, 384, 128) }},
			growing{p.name, "N (M 1024, K 128)", []int{128, 512}, 1, func(be kernel.Backend, act kernel.DType, n int) func() { return p.make(be, act, 1024, n, 128) }},
			growing{p.name, "K (M 1024, N 128)", []int{128, 512}, 1, func(be kernel.Backend, act kernel.DType, n int) func() { return p.make(be, act, 1024, 128, n) }})
	}
	for _, back := range []bool{false, true} {
		name := func(s string) string {
			if back {
				return s + "Backward"
			}
			return s
		}
		all = append(all,
			growing{name("Attention"), "T (head 32)", []int{96, 256}, 2, attention(back, grow, fixed(32))},
			growing{name("Attention"), "head (T 101)", []int{32, 64}, 1, attention(back, fixed(101), grow)},
			growing{name("ResidualNorm"), "rows (D 128)", []int{256}, 1, norm(back, grow, fixed(128))},
			growing{name("ResidualNorm"), "D (256 rows)", []int{128, 512}, 1, norm(back, fixed(256), grow)},
			growing{name("QKNorm"), "head (1024 rows of 6)", []int{32, 64}, 1, qkNorm(back)},
			growing{name("Activate"), "length", []int{4096, 65536}, 1, activate(back)},
			growing{name("Embed"), "D (6400 rows)", []int{128, 512}, 1, embed(back)},
			growing{name("SwiGLU"), "rows (F 512)", []int{256}, 1, func(be kernel.Backend, act kernel.DType, n int) func() { return swiglu(be, act, n, 512, back) }},
			growing{name("SwiGLU"), "F (256 rows)", []int{256, 512}, 1, func(be kernel.Backend, act kernel.DType, n int) func() { return swiglu(be, act, 256, n, back) }},
			growing{name("CrossEntropy"), "rows (V 12)", []int{256}, 1, func(be kernel.Backend, act kernel.DType, n int) func() { return crossEntropy(be, act, n, 12, back) }},
			growing{name("CrossEntropy"), "V (256 rows)", []int{128, 1024}, 1, func(be kernel.Backend, act kernel.DType, n int) func() { return crossEntropy(be, act, 256, n, back) }})
	}
	return append(all,
		flat("Add", func(be kernel.Backend, a, b, c, d kernel.Buf) { be.Add(d, a, b, c) }),
		flat("Convert to bf16", func(be kernel.Backend, a, _, _, d kernel.Buf) { be.Convert(d.Reinterpret(kernel.BFloat16, a.Len()), a) }),
		flat("Convert from bf16", func(be kernel.Backend, a, _, _, d kernel.Buf) { be.Convert(d, a.Reinterpret(kernel.BFloat16, d.Len())) }),
		flat("SumSquares", func(be kernel.Backend, a, _, _, _ kernel.Buf) { be.SumSquares(a) }),
		flat("Lerp", func(be kernel.Backend, a, b, _, _ kernel.Buf) { be.Lerp(a, b, 0.9) }),
		flat("SignSGD", func(be kernel.Backend, a, b, _, _ kernel.Buf) { be.SignSGD(a, b, 1e-3, 0.1) }),
		flat("AdamATan2", func(be kernel.Backend, a, b, c, d kernel.Buf) {
			be.AdamATan2(a, b, c, d, kernel.AdamHyper{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Step: 3})
		}),
		flat("AdamW", func(be kernel.Backend, a, b, c, d kernel.Buf) {
			be.AdamW(a, b, c, d, kernel.AdamHyper{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Step: 3, Eps: 1e-8, GradScale: 1})
		}),
		growing{"AttentionCached", "past (head 64)", []int{256, 1024}, 1, cached},
	)
}

// tailTable has the worst tail of every operation and dimension, worst first.
func tailTable(tails []tail) string {
	worst := map[[2]string]tail{}
	above := 0
	for _, t := range tails {
		k := [2]string{t.Op, t.Dim}
		if t.Ratio > worst[k].Ratio {
			worst[k] = t
		}
		if t.Ratio > 1.15 {
			above++
		}
	}
	var rows []tail
	for _, t := range worst {
		rows = append(rows, t)
	}
	slices.SortFunc(rows, func(a, b tail) int {
		return cmp.Or(-cmp.Compare(a.Ratio, b.Ratio), cmp.Compare(a.Op+a.Dim, b.Op+b.Dim))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "Time at n+1 over time at n, %d pairs of sizes, %d of them above 1.15; the worst of each kind:\n\n", len(tails), above)
	fmt.Fprintln(&b, "| operation | size that grows | n | time at n+1 | work at n+1 |\n| --- | --- | ---: | ---: | ---: |")
	for _, t := range rows {
		fmt.Fprintf(&b, "| %s | %s | %d | %.3f | %.3f |\n", t.Op, t.Dim, t.N, t.Ratio, t.Work)
	}
	return b.String()
}
