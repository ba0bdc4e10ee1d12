package graph

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"deeploop/internal/kernel"
)

// engine is the tensor engine of a graph's values. The one arithmetic that
// Gorgonia itself puts into a graph is the sum of gradients where a value is
// read twice; the engine computes it with the backend, into memory the planner
// chose for it.
type engine struct {
	tensor.StdEng
	backend kernel.Backend
	bufs    map[*tensor.Dense]kernel.Buf
	sums    []sum // in order of execution
	next    int
}

// sum is a planned sum of gradients. The op that computes one of its terms may
// have added that term to the other already; then it is done.
type sum struct {
	out  *tensor.Dense
	done bool
}

func newEngine(b kernel.Backend) *engine {
	return &engine{backend: b, bufs: map[*tensor.Dense]kernel.Buf{}}
}

func (e *engine) register(d *tensor.Dense, b kernel.Buf) { e.bufs[d] = b }

// bufOf finds the memory of a value.
func (e *engine) bufOf(v G.Value) kernel.Buf {
	if d, ok := v.(*tensor.Dense); ok {
		b, ok := e.bufs[d]
		if !ok {
			panic("graph: value without planned memory")
		}
		return b
	}
	return scalarBuf(v)
}

// Add computes the next planned sum of gradients.
func (e *engine) Add(a, b tensor.Tensor, _ ...tensor.FuncOpt) (t tensor.Tensor, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("add gradients: %v", r)
		}
	}()
	if e.next >= len(e.sums) {
		return nil, fmt.Errorf("add gradients: sum %d was not planned", e.next)
	}
	s := e.sums[e.next]
	e.next++
	if !s.done {
		e.backend.Add(e.bufOf(s.out), e.bufOf(a), e.bufOf(b), kernel.Buf{})
	}
	return s.out, nil
}
