package lm

import (
	"encoding/json"
	"fmt"
	"slices"

	"deeploop/internal/checkpoint"
	"deeploop/internal/kernel"
)

// Kind is what checkpoints of this package are called.
const Kind = "lm"

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

// LoadModel builds the model of a checkpoint and reads its weights. weights is
// WeightsEMA (an error when the run kept no average), WeightsRaw, or "" for the
// average where there is one; LoadModel returns which it took. c is the
// checkpoint's architecture, at the loop count of training or at another one
// (AtLoops).
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
	group := checkpoint.Weights
	if weights == WeightsEMA {
		group = checkpoint.EMA
	}
	var s checkpoint.Set
	for _, p := range m.Params() {
		s.Tensor(group, p.Name, p.Shape(), p.Data)
	}
	if err := ck.Load(&s); err != nil {
		return nil, "", err
	}
	for _, p := range m.Params() {
		p.Changed()
	}
	return m, weights, nil
}
