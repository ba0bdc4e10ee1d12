package lm

import (
	"deeploop/internal/checkpoint"
	"deeploop/internal/kernel"
	"deeploop/internal/train"
)

// Kind is what checkpoints of this package are called.
const Kind = "lm"

// Weights that a checkpoint may hold.
const (
	WeightsRaw = train.WeightsRaw
	WeightsEMA = train.WeightsEMA
)

// CheckpointConfig returns the configuration a checkpoint was trained with.
func CheckpointConfig(ck *checkpoint.Reader) (TrainConfig, error) {
	return train.StoredConfig[TrainConfig](ck, Kind)
}

// LoadModel builds the model of a checkpoint and reads its weights. weights is
// WeightsEMA (an error when the run kept no average), WeightsRaw, or "" for the
// average where there is one; LoadModel returns which it took. c is the
// checkpoint's architecture, at the loop count of training or at another one
// (AtLoops).
func LoadModel(ck *checkpoint.Reader, c Config, act kernel.DType, weights string) (*Model, string, error) {
	weights, err := train.ChooseWeights(ck, weights)
	if err != nil {
		return nil, "", err
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
