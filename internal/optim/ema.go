package optim

import "deeploop/internal/kernel"

// EMA is an exponential moving average of weights: after every step
//
//	avg = Rate·avg + (1−Rate)·w.
type EMA struct {
	Rate float64
	// Avg holds one average per param, in their order. It belongs in a
	// checkpoint.
	Avg []kernel.Buf
}

// NewEMA returns averages that start at the present weights.
func NewEMA(b kernel.Backend, params []Param, rate float64) *EMA {
	e := &EMA{Rate: rate, Avg: make([]kernel.Buf, len(params))}
	for i := range params {
		w := params[i].W
		e.Avg[i] = kernel.Alloc(w.Type(), w.Len())
	}
	e.Restart(b, params)
	return e
}

// Restart sets the averages to the present weights.
func (e *EMA) Restart(b kernel.Backend, params []Param) {
	for i := range params {
		b.Convert(e.Avg[i], params[i].W)
	}
}

// Update takes the present weights into the averages.
func (e *EMA) Update(b kernel.Backend, params []Param) {
	for i := range params {
		b.Lerp(e.Avg[i], params[i].W, e.Rate)
	}
}

// of returns the average of param i and its rate; nothing where e is nil.
func (e *EMA) of(i int) (kernel.Buf, float64) {
	if e == nil {
		return kernel.Buf{}, 0
	}
	return e.Avg[i], e.Rate
}

// Swap exchanges weights and averages, element by element in place, so that
// an evaluation can run on the averages; a second Swap puts them back exactly.
func (e *EMA) Swap(params []Param) {
	for i := range params {
		w, a := params[i].W.Bytes(), e.Avg[i].Bytes()
		var tmp [4096]byte
		for at := 0; at < len(w); at += len(tmp) {
			n := copy(tmp[:], w[at:])
			copy(w[at:], a[at:at+n])
			copy(a[at:at+n], tmp[:n])
		}
		params[i].wrote()
	}
}
