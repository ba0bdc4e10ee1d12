package train

import (
	"encoding/json"
	"fmt"
	"slices"

	"deeploop/internal/check"
	"deeploop/internal/checkpoint"
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/optim"
)

// Weights that a checkpoint may hold.
const (
	WeightsRaw = "raw" // as the optimizer left them
	WeightsEMA = "ema" // their average
)

// StoredConfig returns the configuration that a checkpoint of the given kind
// was trained with.
func StoredConfig[C any](ck *checkpoint.Reader, kind string) (c C, err error) {
	if k := ck.Meta().Kind; k != kind {
		return c, &check.Error{Key: "checkpoint " + ck.Dir(), Found: fmt.Sprintf("a model of kind %q", k),
			Want: fmt.Sprintf("%s (%s train and %s import make those; %s eval takes this one)", kind, kind, kind, k)}
	}
	if err := json.Unmarshal(ck.Meta().Config, &c); err != nil {
		return c, fmt.Errorf("read the configuration in checkpoint %s: %w", ck.Dir(), err)
	}
	return c, nil
}

// ChooseWeights says which weights of a checkpoint to take: WeightsEMA (an
// error when the run kept no average), WeightsRaw, or for "" the average where
// there is one.
func ChooseWeights(ck *checkpoint.Reader, weights string) (string, error) {
	has := slices.ContainsFunc(ck.Tensors(), func(t checkpoint.TensorInfo) bool { return t.Group == checkpoint.EMA })
	switch {
	case weights == "" && has:
		return WeightsEMA, nil
	case weights == "":
		return WeightsRaw, nil
	case weights == WeightsEMA && !has:
		return "", &check.Error{Key: "weights", Found: weights, Want: "raw: the run kept no average of its weights (ema when training)"}
	case weights != WeightsEMA && weights != WeightsRaw:
		return "", &check.Error{Key: "weights", Found: fmt.Sprintf("%q", weights), Want: "ema or raw"}
	}
	return weights, nil
}

// CheckWeights returns an error, with an *optim.NonFinite inside, when weights
// read from a checkpoint hold a NaN or an infinity: whatever such a model
// computes means nothing.
func CheckWeights(ck *checkpoint.Reader, b kernel.Backend, params []*graph.Param) error {
	for _, p := range params {
		if err := optim.Finite(b, "weight", p.Name, p.Data); err != nil {
			return fmt.Errorf("checkpoint %s: %w: the model is broken, and what it computes means nothing; use an earlier checkpoint (--checkpoint)", ck.Dir(), err)
		}
	}
	return nil
}
