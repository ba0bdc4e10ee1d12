package lm

import (
	"context"
	"fmt"
	"math"
	"slices"

	"deeploop/deeploop"
	"deeploop/internal/graph"
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
	batch
	model *Model // the view
	group int    // blocks so far apart are visits of one sublayer
	flat  flat
}

// visitGroup is how many blocks lie between two visits of a sublayer: the
// stored ones (blocks 0), or so many of an untied model.
func (c Config) visitGroup(blocks int) (int, error) {
	switch {
	case blocks == 0:
		return c.Layers, nil
	case c.Loops != 1:
		return 0, &ConfigError{Key: "group", Found: blocks, Want: fmt.Sprintf("none for a model of %d loops, whose visits are its rounds", c.Loops)}
	case blocks < 1 || c.Layers%blocks != 0:
		return 0, &ConfigError{Key: "group", Found: blocks, Want: fmt.Sprintf("a divisor of the model's %d layers", c.Layers)}
	}
	return blocks, nil
}

// Agreement is the result for one sublayer.
type Agreement struct {
	Sublayer string    // blocks.0.attn
	KappaG   float64   // NaN where all gradients are zero
	Cosine   float64   // NaN with a single visit, or where a gradient is zero
	Norms    []float64 // |G_r| of each visit, nats per unit of weight
	Full     *Full     // nil unless a FullKappa measured it
}

// Agreements are those of all sublayers.
type Agreements []Agreement

// NewKappa builds the graph for batches of so many sequences of t tokens. group
// takes every so many-th block of an untied model (one loop) as a visit of the
// same sublayer, as if the first so many were the stored blocks of a looped
// model; 0 is none. It is an error when it does not divide the layers.
func NewKappa(m *Model, backend kernel.Backend, rows, t, group int) (*Kappa, error) {
	group, err := m.Config.visitGroup(group)
	if err != nil {
		return nil, err
	}
	view, err := m.view()
	if err != nil {
		return nil, err
	}
	for _, p := range view.Blocks.Params() {
		p.PerRound(view.Config.Loops)
	}
	k := &Kappa{model: view, group: group, batch: newBatch(rows, t, 1)}
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
func (b batch) Load(data Tokens, at int64) error {
	row := make([]int32, len(b.tokens)+1)
	if int64(len(row))+at > data.Len() {
		return fmt.Errorf("measure kappa: %d tokens from position %d on are needed, the split has %d; use a smaller batch_size", len(row), at, data.Len())
	}
	if err := data.Read(row, at); err != nil {
		return err
	}
	b.Set(row[:len(row)-1], row[1:])
	return nil
}

// Set gives the batch's inputs and labels, [B*T].
func (b batch) Set(inputs, labels []int32) {
	copy(b.tokens, inputs)
	copy(b.loss.Labels, labels)
}

// Measure computes all gradients of the batch at the present weights. progress
// (nil: none) is told of the end.
func (k *Kappa) Measure(ctx context.Context, progress func(done, total int)) (Agreements, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, p := range k.model.Params() {
		p.ZeroGrad()
		p.Changed() // the owner may have written
	}
	if err := k.flat.run(); err != nil {
		return nil, err
	}
	if progress != nil {
		progress(1, 1)
	}
	return agreements(k.model.Blocks.Blocks, k.model.Config.Loops, k.group), nil
}

// agreements compares the visits of each sublayer: those of a block in every
// round, and of the blocks a group further on.
func agreements(blocks []*deeploop.Block, rounds, group int) Agreements {
	var all Agreements
	for j := range 2 * group {
		var visits [][]kernel.Buf
		for at := j / 2; at < len(blocks); at += group {
			for r := range rounds {
				var g []kernel.Buf
				for _, p := range matrices(blocks[at], j) {
					g = append(g, p.Grads[r].Buf)
				}
				visits = append(visits, g)
			}
		}
		all = append(all, agree(sublayerName(j), visits))
	}
	return all
}

// Sublayers are counted through: 2i is the attention of block i, 2i+1 its MLP.

func sublayerName(j int) string {
	return fmt.Sprintf("blocks.%d.%s", j/2, [...]string{"attn", "mlp"}[j%2])
}

// matrices are those of a block's attention (j even) or MLP (j odd).
func matrices(bl *deeploop.Block, j int) []*graph.Param {
	if j%2 == 0 {
		return []*graph.Param{bl.QKV, bl.O}
	}
	return []*graph.Param{bl.GateUp, bl.Down}
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

// MeanCosine is the mean of the cosines over the sublayers; NaN where one is.
func (as Agreements) MeanCosine() float64 {
	s := 0.0
	for _, a := range as {
		s += a.Cosine
	}
	return s / float64(len(as))
}

// Max is the largest kappa_G of a sublayer; NaN where one is.
func (as Agreements) Max() float64 { return slices.Max(as.kappas()) }

// Median is the median of kappa_G over the sublayers.
func (as Agreements) Median() float64 { return median(as.kappas()) }

// FullMax is the largest kappa of a sublayer, which is kappa_R of the bound in
// A.3; NaN where one is.
func (as Agreements) FullMax() float64 { return slices.Max(as.full()) }

// FullMedian is the median of kappa over the sublayers.
func (as Agreements) FullMedian() float64 { return median(as.full()) }

func (as Agreements) kappas() (v []float64) {
	for _, a := range as {
		v = append(v, a.KappaG)
	}
	return v
}

func (as Agreements) full() (v []float64) {
	for _, a := range as {
		v = append(v, a.Full.Kappa)
	}
	return v
}

func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
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
			if f := as[i].Full; f != nil {
				if a.Full == nil {
					a.Full = &Full{Sensitivities: make([]float64, len(f.Sensitivities))}
				}
				a.Full.add(f, 1/n)
			}
		}
		mean = append(mean, a)
	}
	return mean
}

// Close releases the graph.
func (k *Kappa) Close() { k.flat.Close() }
