package lm

import (
	"context"
	"encoding/json"
	"fmt"

	"deeploop/internal/kernel"
	"deeploop/internal/ops"
	"deeploop/internal/runlog"
)

// Validation is the loss on a split at one loop count.
type Validation struct {
	Loops       int     `json:"loops"`
	Loss        float64 `json:"loss"`          // nats per token
	BitsPerByte float64 `json:"bits_per_byte"` // 0 where the tokens' lengths are unknown
	Accuracy    float64 `json:"accuracy"`      // share of tokens that were the most likely one
	Tokens      int     `json:"tokens"`        // predicted
	Bytes       int     `json:"bytes"`         // of the predicted tokens
}

// MarshalJSON writes figures that are not finite, those of a model that
// diverged, as package runlog does.
func (v Validation) MarshalJSON() ([]byte, error) {
	type plain Validation
	return json.Marshal(struct {
		plain
		Loss        runlog.Number `json:"loss"`
		BitsPerByte runlog.Number `json:"bits_per_byte"`
	}{plain(v), runlog.Number(v.Loss), runlog.Number(v.BitsPerByte)})
}

// Validate measures the first limit tokens of a split (0: all) at each loop
// count, in windows of the forward's length, one after the other: every token
// but the first is predicted once, from what its window has before it. length
// gives the bytes of a token, nil where unknown.
func Validate(ctx context.Context, f *Forward, data Tokens, limit int64, loops []int, length func(id int32) int, progress func(done, total int)) ([]Validation, error) {
	n := data.Len()
	if limit > 0 {
		n = min(n, limit)
	}
	if n < 2 {
		return nil, fmt.Errorf("the split has %d tokens, at least 2 are needed to predict one", n)
	}
	out := make([]Validation, len(loops))
	most := 0
	for i, r := range loops {
		out[i].Loops = r
		most = max(most, r)
	}
	row := make([]int32, f.T+1)
	predicted := n - 1
	windows := (predicted + int64(f.T) - 1) / int64(f.T)
	for w := int64(0); w < windows; w += int64(f.Batch) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for b := range f.Batch {
			at := (w + int64(b)) * int64(f.T)
			have := int(max(min(predicted-at, int64(f.T)), 0))
			if have > 0 {
				if err := data.Read(row[:have+1], at); err != nil {
					return nil, fmt.Errorf("read validation tokens: %w", err)
				}
			}
			for t := range f.T {
				i := b*f.T + t
				if t < have {
					f.Tokens[i], f.Loss.Labels[i] = row[t], row[t+1]
				} else {
					f.Tokens[i], f.Loss.Labels[i] = 0, ops.IgnoreLabel
				}
			}
		}
		if err := f.Embed(); err != nil {
			return nil, err
		}
		for r := 1; r <= most; r++ {
			if err := f.Round(); err != nil {
				return nil, err
			}
			for i := range out {
				if out[i].Loops != r {
					continue
				}
				if err := f.Head(); err != nil {
					return nil, err
				}
				out[i].add(f.Loss, length)
			}
		}
		if progress != nil {
			progress(int(min(w+int64(f.Batch), windows)), int(windows))
		}
	}
	for i := range out {
		v := &out[i]
		v.Loss /= float64(v.Tokens)
		v.Accuracy /= float64(v.Tokens)
		if v.Bytes > 0 {
			v.BitsPerByte = BitsPerByte(v.Loss, v.Tokens, v.Bytes)
		}
	}
	return out, nil
}

// add sums a batch.
func (v *Validation) add(l *ops.TokenLoss, length func(id int32) int) {
	for i, y := range l.Labels {
		if y < 0 {
			continue
		}
		v.Tokens++
		v.Loss += l.Loss[i]
		if l.Pred[i] == y {
			v.Accuracy++
		}
		if length != nil {
			v.Bytes += length(y)
		}
	}
}

// NewValidation builds a Forward for validating in batches of so many
// sequences of the model's context.
func NewValidation(m *Model, backend kernel.Backend, batch int) (*Forward, error) {
	return NewForward(m, backend, batch, m.Config.Context)
}
