package hrm

import (
	"encoding/json"
	"fmt"
	"slices"

	"deeploop/augment"
	"deeploop/deeploop"
	"deeploop/internal/checkpoint"
	"deeploop/internal/kernel"
)

// Kind is what checkpoints of this package are called.
const Kind = "hrm"

// Weights that a checkpoint may hold.
const (
	WeightsRaw = "raw" // as the optimizer left them
	WeightsEMA = "ema" // their average
)

// CheckpointConfig returns the configuration a checkpoint was trained with.
func CheckpointConfig(ck *checkpoint.Reader) (TrainConfig, error) {
	var c TrainConfig
	if k := ck.Meta().Kind; k != Kind {
		return c, &ConfigError{Key: "checkpoint " + ck.Dir(), Found: fmt.Sprintf("a model of kind %q", k), Want: Kind}
	}
	if err := json.Unmarshal(ck.Meta().Config, &c); err != nil {
		return c, fmt.Errorf("read the configuration in checkpoint %s: %w", ck.Dir(), err)
	}
	return c, nil
}

// Depth is how often a model's parts run. Zero fields mean as in training.
type Depth struct {
	HCycles, LCycles int // calls per segment
	HaltMaxSteps     int // segments
}

// AtDepth returns the architecture with another depth for evaluation. alpha of
// the residual rule stays that of training, whatever N would be at that depth.
func (c Config) AtDepth(d Depth) Config {
	if deeploop.Placement(c.Placement).Scaled() {
		n := c.EffectiveDepth()
		if c.AlphaH == 0 {
			c.AlphaH = deeploop.Rule{P: c.PH, N: n}.Alpha()
		}
		if c.AlphaL == 0 {
			c.AlphaL = deeploop.Rule{P: c.PL, N: n}.Alpha()
		}
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
	has := slices.ContainsFunc(ck.Tensors(), func(t checkpoint.TensorInfo) bool { return t.Group == checkpoint.EMA })
	switch {
	case weights == "" && has:
		weights = WeightsEMA
	case weights == "":
		weights = WeightsRaw
	case weights == WeightsEMA && !has:
		return nil, "", &ConfigError{Key: "weights", Found: weights, Want: "raw: the run kept no average of its weights (ema when training)"}
	case weights != WeightsEMA && weights != WeightsRaw:
		return nil, "", &ConfigError{Key: "weights", Found: fmt.Sprintf("%q", weights), Want: "ema or raw"}
	}
	m, err := newModel(c, act, func(kernel.Buf, float64) {}) // the checkpoint has every number
	if err != nil {
		return nil, "", err
	}
	var s checkpoint.Set
	m.state(&s)
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
