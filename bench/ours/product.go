package ours

import (
	"fmt"
	"math/rand/v2"
	"time"

	"deeploop/bench"
	"deeploop/internal/kernel"
)

// product holds the operands of one shape: y[M,N] = x[M,K]·W[N,K]ᵀ,
// dx = dy·W, dw = dyᵀ·x. They stay the same, so W is packed once, as in a step
// where it is used several times.
type product struct {
	m, n, k          int
	act              kernel.DType
	x, dy, y, dx, dw kernel.Buf
	w                *kernel.Weight
}

func newProduct(act kernel.DType, m, n, k int) *product {
	draw := rand.New(rand.NewPCG(1, 1))
	fill := func(t kernel.DType, n int) kernel.Buf {
		const some = 1 << 16 // then they repeat, since drawing is slow
		b := kernel.Alloc(t, n)
		for i := range min(n, some) {
			b.SetAt(i, draw.NormFloat64())
		}
		bytes := b.Bytes()
		for done := some * t.Size(); done < len(bytes); done *= 2 {
			copy(bytes[done:], bytes[:done])
		}
		return b
	}
	return &product{
		m: m, n: n, k: k, act: act,
		x: fill(act, m*k), dy: fill(act, m*n),
		y: kernel.Alloc(act, m*n), dx: kernel.Alloc(act, m*k), dw: kernel.Alloc(act.Master(), n*k),
		w: &kernel.Weight{Data: fill(act.Master(), n*k), Rows: n, Cols: k, Version: 1},
	}
}

func (s *server) multiply(r bench.Request) (bench.Reply, error) {
	var reply bench.Reply
	act, err := precision(r.Precision)
	if err != nil {
		return reply, err
	}
	p := s.product
	if p == nil || p.act != act || p.m != r.M || p.n != r.N || p.k != r.K {
		p = newProduct(act, r.M, r.N, r.K)
		s.product = p
	}
	var run func()
	switch r.Kind {
	case "forward":
		run = func() { s.backend.Linear(p.y, p.x, p.w) }
	case "dx":
		run = func() { s.backend.LinearDX(p.dx, p.dy, p.w, false) }
	case "dw":
		run = func() { s.backend.LinearDW(p.dw, p.dy, p.x, p.n, p.k, false) }
	default:
		return reply, fmt.Errorf("kind is %q, expected forward, dx or dw", r.Kind)
	}
	for range r.Times {
		start := time.Now()
		run()
		reply.Seconds = append(reply.Seconds, time.Since(start).Seconds())
	}
	return reply, nil
}
