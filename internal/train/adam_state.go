package train

import (
	"slices"

	"deeploop/internal/checkpoint"
	"deeploop/internal/kernel"
	"deeploop/internal/optim"
)

// AdamState lists the moments of params (exp_avg and exp_avg_sq, PyTorch's
// names) and, where there is an ema, their averages. shape returns that of
// param i. Weights and the count of steps are the caller's.
func AdamState(s *checkpoint.Set, params []optim.Param, shape func(i int) []int, ema *optim.EMA) {
	for i, p := range params {
		s.Tensor(checkpoint.Optimizer, p.Name+".exp_avg", shape(i), p.M)
		s.Tensor(checkpoint.Optimizer, p.Name+".exp_avg_sq", shape(i), p.V)
		if ema != nil {
			s.Tensor(checkpoint.EMA, p.Name, shape(i), ema.Avg[i])
		}
	}
}

// AdamRestored is Trainer.Restored for what AdamState and the weights list:
// weights have changed, and averages that were not loaded start at them.
func AdamRestored(b kernel.Backend, params []optim.Param, ema *optim.EMA, fresh []string) {
	for i := range params {
		params[i].Wrote()
	}
	if ema != nil && slices.Contains(fresh, checkpoint.EMA) {
		ema.Restart(b, params)
	}
}
