package hrm

import (
	"cmp"

	"deeploop/augment"
	"deeploop/deeploop"
	"deeploop/internal/checkpoint"
	"deeploop/internal/kernel"
	"deeploop/internal/train"
)

// Kind is what checkpoints of this package are called.
const Kind = "hrm"

// Weights that a checkpoint may hold.
const (
	WeightsRaw = train.WeightsRaw
	WeightsEMA = train.WeightsEMA
)

// CheckpointConfig returns the configuration a checkpoint was trained with.
func CheckpointConfig(ck *checkpoint.Reader) (TrainConfig, error) {
	return train.StoredConfig[TrainConfig](ck, Kind)
}

// Depth is how often a model's parts run. Zero fields mean as in training.
type Depth struct {
	HCycles, LCycles int // calls per segment
	HaltMaxSteps     int // segments
}

// AtDepth returns the architecture with another depth for evaluation. alpha of
// the residual rule stays that of training, whatever N would be at that depth,
// and so does beta, which the weights have been multiplied by.
func (c Config) AtDepth(d Depth) Config {
	if deeploop.Placement(c.Placement).Scaled() {
		h, l := deeploop.Rule{P: c.PH, N: c.EffectiveDepth()}, deeploop.Rule{P: c.PL, N: c.EffectiveDepth()}
		if !c.OneNetwork() {
			c.AlphaH, c.BetaH = cmp.Or(c.AlphaH, h.Alpha()), cmp.Or(c.BetaH, h.Beta())
		}
		c.AlphaL, c.BetaL = cmp.Or(c.AlphaL, l.Alpha()), cmp.Or(c.BetaL, l.Beta())
	}
	for _, f := range []struct {
		to   *int
		from int
	}{{&c.HCycles, d.HCycles}, {&c.LCycles, d.LCycles}, {&c.HaltMaxSteps, d.HaltMaxSteps}} {
		if f.from != 0 {
			*f.to = f.from
		}
	}
	return c
}

// LoadModel builds the model of a checkpoint and reads weights and task
// embeddings. weights is WeightsEMA (an error when the
// run kept no average), WeightsRaw, or "" for the average where there is one;
// LoadModel returns which it took. c is the checkpoint's architecture with the
// dataset's sizes, at the depth of training or at another one (AtDepth).
func LoadModel(ck *checkpoint.Reader, c Config, act kernel.DType, weights string) (*Model, string, error) {
	return loadModel(ck, c, act, weights, (*Model).State)
}

// LoadWeights is LoadModel without the task embeddings, which are zeros and as
// many as c says.
func LoadWeights(ck *checkpoint.Reader, c Config, act kernel.DType, weights string) (*Model, string, error) {
	return loadModel(ck, c, act, weights, (*Model).weights)
}

// MeanTaskEmbedding returns the mean [PuzzleEmbDim] of a checkpoint's task
// embeddings, the blank identifier's left out. c is the checkpoint's
// architecture.
func MeanTaskEmbedding(ck *checkpoint.Reader, c Config) ([]float64, error) {
	table := make([]float32, c.NumPuzzleIdentifiers*c.PuzzleEmbDim)
	var s checkpoint.Set
	s.Tensor(checkpoint.TaskEmbeddings, puzzleTable, []int{c.NumPuzzleIdentifiers, c.PuzzleEmbDim}, table)
	if err := ck.Load(&s); err != nil {
		return nil, err
	}
	mean := make([]float64, c.PuzzleEmbDim)
	rows := max(1, c.NumPuzzleIdentifiers-1)
	for i := c.PuzzleEmbDim; i < len(table); i++ {
		mean[i%c.PuzzleEmbDim] += float64(table[i]) / float64(rows)
	}
	return mean, nil
}

// loadModel builds a model and reads what list lists.
func loadModel(ck *checkpoint.Reader, c Config, act kernel.DType, weights string, list func(*Model, *checkpoint.Set)) (*Model, string, error) {
	weights, err := train.ChooseWeights(ck, weights)
	if err != nil {
		return nil, "", err
	}
	m, err := newModel(c, act, func(kernel.Buf, float64) {}) // the checkpoint has every number
	if err != nil {
		return nil, "", err
	}
	var s checkpoint.Set
	list(m, &s)
	if err := ck.Load(&s); err != nil {
		return nil, "", err
	}
	if weights == WeightsEMA {
		var e checkpoint.Set
		for _, p := range m.Params() {
			e.Tensor(checkpoint.EMA, p.Name, p.Shape(), p.Data)
		}
		if err := ck.Load(&e); err != nil {
			return nil, "", err
		}
	}
	for _, p := range m.Params() {
		p.Changed()
	}
	return m, weights, nil
}

// DatasetIdentity names a dataset's identifiers, for the check that a
// checkpoint's task embeddings belong to it.
func DatasetIdentity(d *augment.Dataset) (checkpoint.Identity, error) {
	names, err := d.Identifiers()
	if err != nil {
		return checkpoint.Identity{}, err
	}
	return checkpoint.IdentityOf(names), nil
}
