package lm

import (
	"context"
	"math"
	"slices"

	"deeploop/internal/kernel"
)

// FullKappa measures kappa itself (architectures.md A.4, point 2), of which
// kappa_G is the half that costs nothing:
//
//	kappa = |Σ_r U_r| |Σ_r G_r| / ( R · max_r |U_r| · max_r |G_r| )     0 to R, 1 with one visit
//
// G_r is visit r's gradient of the loss with respect to the sublayer's
// matrices, as in Kappa. U_r is the derivative of the final hidden states, all
// [B*T, D] of the batch as the head reads them, with respect to the matrices
// that visit r alone sees; |U_r| is its operator norm, how far the states move
// (Euclidean) per unit of the matrices' Frobenius norm. The norm is that of
// U_r·v for a direction v which starts as the gradient and is turned to the top
// singular one by power iterations, v <- U_rᵀ U_r v over its norm. |Σ_r U_r| is
// the same of the operator that moves all visits' matrices at once.
//
// It wants Float32 or Float64: U_r·v is made of differences, see chain.
type FullKappa struct {
	batch
	chain      *chain
	group      int
	iterations int
}

// Full is what FullKappa adds to a sublayer's Agreement. All are NaN where a
// gradient is zero.
type Full struct {
	Kappa          float64
	Sensitivities  []float64 // |U_r| of each visit
	SumSensitivity float64   // |Σ_r U_r|
	SumNorm        float64   // |Σ_r G_r|
}

func (f *Full) add(g *Full, scale float64) {
	f.Kappa += g.Kappa * scale
	f.SumSensitivity += g.SumSensitivity * scale
	f.SumNorm += g.SumNorm * scale
	for i, v := range g.Sensitivities {
		f.Sensitivities[i] += v * scale
	}
}

// DefaultIterations are the power iterations of A.4.
const DefaultIterations = 5

// NewFullKappa builds the graphs for batches of so many sequences of t tokens.
// group is that of NewKappa. With 0 iterations |U_r| is that
// along the gradient alone.
func NewFullKappa(m *Model, backend kernel.Backend, rows, t, group, iterations int) (*FullKappa, error) {
	if m.Act == kernel.BFloat16 {
		return nil, &ConfigError{Key: "precision", Found: "bf16", Want: "fp32, since differences of bf16 states are mostly rounding"}
	}
	group, err := m.Config.visitGroup(group)
	if err != nil {
		return nil, err
	}
	k := &FullKappa{batch: newBatch(rows, t, 1), group: group, iterations: iterations}
	k.chain, err = newChain(m, backend, k.batch)
	return k, err
}

// Measure computes gradients and sensitivities of the batch at the present
// weights. progress (nil: none) is told of every operator norm.
func (k *FullKappa) Measure(ctx context.Context, progress func(done, total int)) (Agreements, error) {
	c := k.chain
	if err := c.values(); err != nil {
		return nil, err
	}
	if err := c.lossGradient(); err != nil {
		return nil, err
	}
	gradients := make([]direction, c.visits) // of each visit
	err := c.transposed(0, func(s int, g direction) { gradients[s] = g.clone() })
	if err != nil {
		return nil, err
	}
	sublayers, done := 2*k.group, 0
	total := c.visits
	if c.visits > sublayers {
		total += sublayers
	}
	norm := func(visits []int, start direction) (float64, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		v, err := k.norm(visits, start)
		if done++; progress != nil {
			progress(done, total)
		}
		return v, err
	}
	var all Agreements
	for j := range sublayers {
		var visits []int
		var parts [][]kernel.Buf
		sum := gradients[j].clone()
		for s := j; s < c.visits; s += sublayers {
			visits = append(visits, s)
			parts = append(parts, gradients[s][:])
			if s > j {
				sum.add(1, gradients[s])
			}
		}
		a, f := agree(sublayerName(j), parts), &Full{SumNorm: sum.norm()}
		for _, s := range visits {
			u, err := norm([]int{s}, gradients[s])
			if err != nil {
				return nil, err
			}
			f.Sensitivities = append(f.Sensitivities, u)
		}
		f.SumSensitivity = f.Sensitivities[0]
		if len(visits) > 1 {
			if f.SumSensitivity, err = norm(visits, sum); err != nil {
				return nil, err
			}
		}
		f.Kappa = f.SumSensitivity * f.SumNorm / (float64(len(visits)) * slices.Max(f.Sensitivities) * slices.Max(a.Norms))
		a.Full = f
		all = append(all, a)
	}
	return all, nil
}

// norm is the operator norm of the sum of the visits' U, from a start on.
func (k *FullKappa) norm(visits []int, start direction) (float64, error) {
	v, c := start.clone(), k.chain
	if n := v.norm(); n == 0 || math.IsNaN(n) || math.IsInf(n, 0) {
		return math.NaN(), nil
	}
	v.unit()
	for range k.iterations {
		u, err := c.tangent(visits, v)
		if err != nil {
			return 0, err
		}
		copy(c.grad.Bytes(), u.Bytes())
		v.clear()
		err = c.transposed(visits[0], func(s int, g direction) {
			if slices.Contains(visits, s) {
				v.add(1, g)
			}
		})
		if err != nil {
			return 0, err
		}
		v.unit()
	}
	u, err := c.tangent(visits, v)
	return norm(u), err
}

// Close releases the graphs.
func (k *FullKappa) Close() { k.chain.Close() }
