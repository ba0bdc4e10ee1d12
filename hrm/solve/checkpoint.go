package solve

import (
	"fmt"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/hrm"
	"deeploop/internal/checkpoint"
	"deeploop/internal/kernel"
	"deeploop/internal/train"
)

// Checkpoint is a trained model to start from. Its reader stays the caller's.
type Checkpoint struct {
	Reader  *checkpoint.Reader
	Weights string // hrm.WeightsEMA or hrm.WeightsRaw
	Config  hrm.TrainConfig
	Side    int // of its canvas
}

// Error is a problem that the settings cannot serve.
type Error struct{ msg string }

func (e *Error) Error() string { return e.msg }

// BadInput marks the error as the caller's, for exit code 2.
func (e *Error) BadInput() bool { return true }

func errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// NewCheckpoint checks that a checkpoint is of a model for ARC canvases with
// task embeddings and has the weights asked for: hrm.WeightsEMA, hrm.WeightsRaw,
// or "" for the average where there is one.
func NewCheckpoint(ck *checkpoint.Reader, weights string) (*Checkpoint, error) {
	c, err := hrm.CheckpointConfig(ck)
	if err != nil {
		return nil, err
	}
	a := c.Arch
	if a.VocabSize != augment.VocabSize {
		return nil, errorf("start from checkpoint %s: its vocabulary has %d tokens, ARC needs %d; take one that was trained on ARC tasks",
			ck.Dir(), a.VocabSize, augment.VocabSize)
	}
	if a.PuzzleEmbDim == 0 {
		return nil, errorf("start from checkpoint %s: it has no task embeddings (puzzle_emb_ndim 0), so it cannot be told which task is meant", ck.Dir())
	}
	weights, err = train.ChooseWeights(ck, weights)
	if err != nil {
		return nil, err
	}
	side := 1
	for side*side < a.SeqLen {
		side++
	}
	if side*side != a.SeqLen || side > arc.MaxSide {
		return nil, errorf("start from checkpoint %s: its sequences of %d tokens are no square canvas of up to %dx%d", ck.Dir(), a.SeqLen, arc.MaxSide, arc.MaxSide)
	}
	return &Checkpoint{Reader: ck, Weights: weights, Config: c, Side: side}, nil
}

// holds refuses a problem that does not fit the checkpoint's canvas.
func (c *Checkpoint) holds(p *Problem) error {
	if side := p.Side(); side > c.Side {
		return errorf("it needs a %dx%d canvas, the checkpoint was trained on %dx%d ones; solve it without a checkpoint, or take one with larger canvases",
			side, side, c.Side, c.Side)
	}
	return nil
}

// model reads the weights and makes new task embeddings. arch has the sizes of
// the problem.
func (c *Checkpoint) model(arch hrm.Config, act kernel.DType, init string) (*hrm.Model, error) {
	m, _, err := hrm.LoadWeights(c.Reader, arch, act, c.Weights)
	if err != nil || init != InitMean {
		return m, err
	}
	mean, err := hrm.MeanTaskEmbedding(c.Reader, c.Config.Arch)
	if err != nil {
		return nil, err
	}
	for i := range m.PuzzleTable.Len() {
		m.PuzzleTable.SetAt(i, mean[i%len(mean)])
	}
	return m, nil
}
