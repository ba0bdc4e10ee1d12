package lm

import (
	"fmt"
	"math"
	"slices"

	"deeploop/deeploop"
	"deeploop/internal/kernel"
)

// Kappa measures how well the gradients of a sublayer's visits agree
// (architectures.md A.4). With G_r what round r's visit contributes to the
// gradient of the sublayer's matrices (all of them together, gains left out):
//
//	kappa_G = |Σ_r G_r|² / Σ_r |G_r|²         0 to R; 1 where visits are orthogonal
//	cosine  = mean over r < t of ⟨G_r, G_t⟩ / (|G_r| |G_t|)
//
// It works on a view of the model that shares its weights and has gradients of
// its own, R accumulators for each matrix, so training can go on meanwhile.
type Kappa struct {
	model *Model // the view
	group int    // blocks so far apart are visits of one sublayer
	batch batch
	flat  flat
}

// Group takes every k-th block of an untied model (one loop) as a visit of the
// same sublayer, k blocks in all, as if they were the stored blocks of a looped
// one. It is an error when k does not divide the layers.
func (k *Kappa) Group(blocks int) error {
	c := k.model.Config
	if c.Loops != 1 {
		return &ConfigError{Key: "group", Found: blocks, Want: fmt.Sprintf("none for a model of %d loops, whose visits are its rounds", c.Loops)}
	}
	if blocks < 1 || c.Layers%blocks != 0 {
		return &ConfigError{Key: "group", Found: blocks, Want: fmt.Sprintf("a divisor of the model's %d layers", c.Layers)}
	}
	k.group = blocks
	return nil
}

// Agreement is the result for one sublayer.
type Agreement struct {
	Sublayer string    // blocks.0.attn
	KappaG   float64   // NaN where all gradients are zero
	Cosine   float64   // NaN with a single visit, or where a gradient is zero
	Norms    []float64 // |G_r| of each visit
}

// Agreements are those of all sublayers.
type Agreements []Agreement

// NewKappa builds the graph for batches of so many sequences of t tokens.
func NewKappa(m *Model, backend kernel.Backend, rows, t int) (*Kappa, error) {
	view, err := m.view()
	if err != nil {
		return nil, err
	}
	for _, p := range view.Blocks.Params() {
		p.PerRound(view.Config.Loops)
	}
	k := &Kappa{model: view, group: view.Config.Layers, batch: newBatch(rows, t, 1)}
	if k.flat, err = newFlat(view, backend, k.batch, true); err != nil {
		return nil, err
	}
	return k, nil
}

// view is a model with the same weights and gradients of its own.
func (m *Model) view() (*Model, error) {
	v, err := newModel(m.Config, m.Act, func(kernel.Buf, float64) {})
	if err != nil {
		return nil, err
	}
	own := m.Params()
	for i, p := range v.Params() {
		p.Data = own[i].Data
	}
	v.Blocks.Residual = m.Blocks.Residual
	return v, nil
}

// Load reads the batch's tokens from a split, from position at on.
func (k *Kappa) Load(data Tokens, at int64) error {
	row := make([]int32, len(k.batch.tokens)+1)
	if int64(len(row))+at > data.Len() {
		return fmt.Errorf("measure kappa: %d tokens from position %d on are needed, the split has %d; use a smaller batch_size", len(row), at, data.Len())
	}
	if err := data.Read(row, at); err != nil {
		return err
	}
	k.Set(row[:len(row)-1], row[1:])
	return nil
}

// Set gives the batch's inputs and labels, [B*T].
func (k *Kappa) Set(inputs, labels []int32) {
	copy(k.batch.tokens, inputs)
	copy(k.batch.loss.Labels, labels)
}

// Measure computes all gradients of the batch at the present weights.
func (k *Kappa) Measure() (Agreements, error) {
	for _, p := range k.model.Params() {
		p.ZeroGrad()
		p.Changed() // the owner may have written
	}
	if err := k.flat.run(); err != nil {
		return nil, err
	}
	return agreements(k.model.Blocks.Blocks, k.model.Config.Loops, k.group), nil
}

// agreements compares the visits of each sublayer: those of a block in every
// round, and of the blocks a group further on.
func agreements(blocks []*deeploop.Block, rounds, group int) Agreements {
	var all Agreements
	for i := range group {
		attn, mlp := make([][]kernel.Buf, 0, rounds), make([][]kernel.Buf, 0, rounds)
		for at := i; at < len(blocks); at += group {
			bl := blocks[at]
			for r := range rounds {
				attn = append(attn, []kernel.Buf{bl.QKV.Grads[r].Buf, bl.O.Grads[r].Buf})
				mlp = append(mlp, []kernel.Buf{bl.GateUp.Grads[r].Buf, bl.Down.Grads[r].Buf})
			}
		}
		all = append(all, agree(fmt.Sprintf("blocks.%d.attn", i), attn), agree(fmt.Sprintf("blocks.%d.mlp", i), mlp))
	}
	return all
}

// agree compares gradients, each in as many parts.
func agree(name string, visits [][]kernel.Buf) Agreement {
	n := len(visits)
	dots := make([]float64, n*n)
	for r := range n {
		for t := r; t < n; t++ {
			d := 0.0
			for i := range visits[r] {
				d += dot(visits[r][i], visits[t][i])
			}
			dots[r*n+t], dots[t*n+r] = d, d
		}
	}
	a := Agreement{Sublayer: name, Norms: make([]float64, n)}
	sum, squares, cosines := 0.0, 0.0, 0.0
	for r := range n {
		a.Norms[r] = math.Sqrt(dots[r*n+r])
		squares += dots[r*n+r]
		for t := range n {
			sum += dots[r*n+t]
			if r < t {
				cosines += dots[r*n+t] / math.Sqrt(dots[r*n+r]*dots[t*n+t])
			}
		}
	}
	a.KappaG, a.Cosine = sum/squares, cosines/float64(n*(n-1)/2)
	return a
}

func dot(a, b kernel.Buf) float64 {
	s := 0.0
	if a.Type() == kernel.Float32 {
		x, y := a.Float32s(), b.Float32s()
		for i := range x {
			s += float64(x[i]) * float64(y[i])
		}
		return s
	}
	for i := range a.Len() {
		s += a.At(i) * b.At(i)
	}
	return s
}

// Max is the largest kappa_G of a sublayer; NaN where one is.
func (as Agreements) Max() float64 { return slices.Max(as.kappas()) }

// Median is the median of kappa_G over the sublayers.
func (as Agreements) Median() float64 {
	v := as.kappas()
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// MeanCosine is the mean of the cosines over the sublayers; NaN where one is.
func (as Agreements) MeanCosine() float64 {
	s := 0.0
	for _, a := range as {
		s += a.Cosine
	}
	return s / float64(len(as))
}

// kappas returns kappa_G of the sublayers in rising order.
func (as Agreements) kappas() []float64 {
	v := make([]float64, len(as))
	for i, a := range as {
		v[i] = a.KappaG
	}
	slices.Sort(v)
	return v
}

// MeanOf averages measurements of one model on several batches, entry by entry.
func MeanOf(all []Agreements) Agreements {
	var mean Agreements
	for i, first := range all[0] {
		a := Agreement{Sublayer: first.Sublayer, Norms: make([]float64, len(first.Norms))}
		n := float64(len(all))
		for _, as := range all {
			a.KappaG += as[i].KappaG / n
			a.Cosine += as[i].Cosine / n
			for r, v := range as[i].Norms {
				a.Norms[r] += v / n
			}
		}
		mean = append(mean, a)
	}
	return mean
}

// Close releases the graph.
func (k *Kappa) Close() { k.flat.Close() }
