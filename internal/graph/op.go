package graph

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"deeploop/internal/kernel"
)

// Node is a value of the expression graph.
type Node = G.Node

// Spec describes one op: what it computes and how it differentiates. The
// forward and the backward of a kernel stand side by side in one Spec.
type Spec struct {
	Name string
	In   []*Node
	// Type, Rows and Cols describe the output. Rows 0 makes a scalar of the
	// master type.
	Type       kernel.DType
	Rows, Cols int
	// Forward computes out from the inputs' buffers, in the order of In.
	Forward func(out kernel.Buf, in []kernel.Buf)
	// Add, where set, does out += what Forward computes. A sum of gradients
	// with such a term needs no pass of its own.
	Add func(out kernel.Buf, in []kernel.Buf)
	// Cheap says that backward ops should compute the output once more, from
	// inputs that are kept anyway, rather than have it kept (Builder.Again).
	Cheap bool
	// Over lists inputs whose memory out may be.
	Over []int
	// Lends, where set, is working memory of other graphs, which run inside
	// Forward and at other times than this graph.
	Lends *Arena
	// Grads are the accumulators of parameters that running the op writes.
	Grads []*GradBuf
	// Second, where set, computes a second output of the same type and shape
	// besides out; Builder.ApplyPair makes such ops.
	Second func(out, second kernel.Buf, in []kernel.Buf)
	// Diff says which inputs Backward has a gradient for (nil: none).
	Diff []bool
	// Backward builds the gradient nodes of the inputs (nil where Diff is
	// false) from the output and its gradient.
	Backward func(out, dout *Node) []*Node
}

// op makes a Spec a Gorgonia op. It owns its output, is never merged with an
// equal op (its hash holds a unique id) and never overwrites an input.
type op struct {
	Spec
	id  uint64
	b   *Builder
	val G.Value // persistent output
	buf kernel.Buf
	in  []kernel.Buf // scratch for Do
	// second is the op of the second output. Its memory is planned from this
	// op on; running it does nothing.
	second *op
	tap    bool
	add    bool // the planner chose Add
}

// overs lists the inputs that out may overwrite.
func (o *op) overs() []*Node {
	var ns []*Node
	for _, i := range o.Over {
		ns = append(ns, o.In[i])
	}
	return ns
}

func (o *op) isScalar() bool { return o.Rows == 0 }

func (o *op) Arity() int { return len(o.In) }

// Type builds a fresh type at each call: Gorgonia returns the old one to a pool.
func (o *op) Type() hm.Type {
	ts := make([]hm.Type, 0, len(o.In)+1)
	for _, n := range o.In {
		if n.IsScalar() {
			ts = append(ts, n.Dtype())
		} else {
			ts = append(ts, G.TensorType{Dims: 2, Of: n.Dtype()})
		}
	}
	if o.isScalar() {
		ts = append(ts, tensorType(o.Spec.Type))
	} else {
		ts = append(ts, G.TensorType{Dims: 2, Of: tensorType(o.Spec.Type)})
	}
	return hm.NewFnType(ts...)
}

func (o *op) InferShape(...G.DimSizer) (tensor.Shape, error) {
	if o.isScalar() {
		return tensor.ScalarShape(), nil
	}
	return tensor.Shape{o.Rows, o.Cols}, nil
}

// Do runs the kernel. A panic inside would kill the process, so it becomes an
// error (compute.md, traps).
func (o *op) Do(vals ...G.Value) (v G.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("run op %s: %v", o.Name, r)
		}
	}()
	if o.tap {
		return o.val, nil
	}
	for i, val := range vals {
		o.in[i] = o.b.engine.bufOf(val)
	}
	switch {
	case o.second != nil:
		o.Second(o.buf, o.second.buf, o.in)
	case o.add:
		o.Add(o.buf, o.in)
	default:
		o.Forward(o.buf, o.in)
	}
	return o.val, nil
}

func (o *op) ReturnsPtr() bool     { return true }
func (o *op) CallsExtern() bool    { return false }
func (o *op) OverwritesInput() int { return -1 }
func (o *op) String() string       { return fmt.Sprintf("%s#%d", o.Name, o.id) }

func (o *op) WriteHash(h hash.Hash) {
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], o.id)
	h.Write(raw[:])
	h.Write([]byte(o.Name))
}

func (o *op) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

func (o *op) DiffWRT(inputs int) []bool {
	if o.Diff == nil {
		return make([]bool, inputs)
	}
	return o.Diff
}

func (o *op) SymDiff(_ G.Nodes, output, grad *Node) (ns G.Nodes, err error) {
	if o.Backward == nil {
		return nil, fmt.Errorf("op %s cannot be differentiated", o.Name)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("differentiate op %s: %v", o.Name, r)
		}
	}()
	return o.Backward(output, grad), nil
}
