package optim

import (
	"fmt"

	"deeploop/internal/kernel"
)

// SparseSignSGD is the reference's optimizer of the task-embedding table: only
// the rows a batch used are touched, with
//
//	row = row·(1 − lr·WeightDecay) − lr·sign(Σ gradients of that row).
//
// Rows that a batch did not use are not decayed either. The zero value with a
// WeightDecay is ready for use; it has no state that a checkpoint must hold.
type SparseSignSGD struct {
	WeightDecay float64

	slot map[int32]int // id -> position among the distinct ids of the batch
	ids  []int32       // distinct ids in first-seen order
	sums kernel.Buf    // [B, ndim], sums of gradients in that order
}

// Step updates table [rows, ndim] from grad [B, ndim], the gradient of each
// row of the batch, where ids [B] names the table's row that each one used.
// Gradients of equal ids are added in the order of the batch before the sign
// is taken, so the result is the same on every run. It panics on an id outside
// the table and on shapes that do not fit.
func (o *SparseSignSGD) Step(b kernel.Backend, table kernel.Buf, ndim int, ids []int32, grad kernel.Buf, lr float64) {
	if ndim <= 0 || table.Len()%ndim != 0 || grad.Len() != len(ids)*ndim {
		panic(fmt.Sprintf("optim: table of %d, gradient of %d elements for %d ids of width %d",
			table.Len(), grad.Len(), len(ids), ndim))
	}
	o.merge(b, ndim, ids, grad)
	rows := table.Len() / ndim
	for i, id := range o.ids {
		if id < 0 || int(id) >= rows {
			panic(fmt.Sprintf("optim: id %d outside a table of %d rows", id, rows))
		}
		at := int(id) * ndim
		b.SignSGD(table.Slice(at, at+ndim), o.sums.Slice(i*ndim, (i+1)*ndim), lr, o.WeightDecay)
	}
}

// merge fills o.ids and o.sums.
func (o *SparseSignSGD) merge(b kernel.Backend, ndim int, ids []int32, grad kernel.Buf) {
	if o.sums.Len() < grad.Len() || o.sums.Type() != grad.Type() {
		o.sums = kernel.Alloc(grad.Type(), grad.Len())
	}
	if o.slot == nil {
		o.slot = make(map[int32]int, len(ids))
	}
	clear(o.slot)
	o.ids = o.ids[:0]
	for r, id := range ids {
		g := grad.Slice(r*ndim, (r+1)*ndim)
		i, seen := o.slot[id]
		if !seen {
			i = len(o.ids)
			o.slot[id] = i
			o.ids = append(o.ids, id)
			b.Convert(o.sums.Slice(i*ndim, (i+1)*ndim), g)
			continue
		}
		sum := o.sums.Slice(i*ndim, (i+1)*ndim)
		b.Add(sum, sum, g, kernel.Buf{})
	}
}
