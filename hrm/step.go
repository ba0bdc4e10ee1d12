package hrm

import (
	"errors"
	"math"

	"deeploop/internal/kernel"
	"deeploop/internal/optim"
	"deeploop/internal/rng"
)

// StepMetrics are one step's sums over the batch, as the reference logs them
// before division. Count and the four after it run over the rows that halted
// at this step and have at least one counted label.
type StepMetrics struct {
	Count         int     `json:"count"`
	Accuracy      float64 `json:"accuracy"`       // Σ share of counted cells right
	ExactAccuracy float64 `json:"exact_accuracy"` // rows with every counted cell right
	QHaltAccuracy float64 `json:"q_halt_accuracy"`
	Steps         int     `json:"steps"`

	LMLoss        float64 `json:"lm_loss"`
	QHaltLoss     float64 `json:"q_halt_loss"`
	QContinueLoss float64 `json:"q_continue_loss"`
}

// Loss is the training objective before division by the global batch:
// lm_loss + ½(q_halt_loss + q_continue_loss).
func (m StepMetrics) Loss() float64 { return m.LMLoss + 0.5*(m.QHaltLoss+m.QContinueLoss) }

// Add sums two steps.
func (m *StepMetrics) Add(o StepMetrics) {
	m.Count += o.Count
	m.Accuracy += o.Accuracy
	m.ExactAccuracy += o.ExactAccuracy
	m.QHaltAccuracy += o.QHaltAccuracy
	m.Steps += o.Steps
	m.LMLoss += o.LMLoss
	m.QHaltLoss += o.QHaltLoss
	m.QContinueLoss += o.QContinueLoss
}

// measure reads a segment's state after its losses ran.
func measure(s *Segment, steps []int32, halted []bool) StepMetrics {
	m := StepMetrics{LMLoss: s.Loss.Sum, QHaltLoss: s.Q.HaltSum, QContinueLoss: s.Q.ContinueSum}
	for i := range s.Batch {
		valid := s.Loss.Valid[i]
		if !halted[i] || valid == 0 {
			continue
		}
		exact := s.Loss.Exact(i)
		m.Count++
		m.Accuracy += float64(s.Loss.Right[i]) / float64(valid)
		if exact {
			m.ExactAccuracy++
		}
		if (s.Q.QHalt[i] >= 0) == exact {
			m.QHaltAccuracy++
		}
		m.Steps += int(steps[i])
	}
	return m
}

// Learner is a model with its training state: gradients, optimizers, carry and
// exploration stream. One Step is one optimizer step on one segment.
type Learner struct {
	Model   *Model
	Segment *Segment
	Carry   *Carry

	Params []optim.Param
	Adam   optim.AdamATan2
	Sign   optim.SparseSignSGD
	EMA    *optim.EMA // nil without
	// LR and PuzzleLR are the schedules; steps count from 1.
	LR, PuzzleLR optim.Cosine
	// StepsDone counts optimizer steps.
	StepsDone int
	// Frozen leaves all weights as they are: only task embeddings learn.
	Frozen bool

	explore     *rng.Stream
	exploreProb float64
	backend     kernel.Backend
	last        []bool
}

// NewLearner builds the graphs and fresh optimizer state. totalSteps is the
// length of the schedule.
func NewLearner(m *Model, backend kernel.Backend, c TrainConfig, totalSteps int) (*Learner, error) {
	batch := c.GlobalBatchSize
	s, err := NewSegment(m, backend, batch)
	if err != nil {
		return nil, err
	}
	if err := s.BuildGradient(1 / float64(batch)); err != nil {
		s.Close()
		return nil, err
	}
	l := &Learner{
		Model: m, Segment: s, Carry: NewCarry(batch, m.Config.SeqLen),
		Adam:        optim.AdamATan2{Beta1: c.Beta1, Beta2: c.Beta2, WeightDecay: c.WeightDecay},
		Sign:        optim.SparseSignSGD{WeightDecay: c.PuzzleEmbWeightDecay},
		LR:          optim.Cosine{Base: c.LR, Warmup: c.LRWarmupSteps, Total: totalSteps, MinRatio: c.LRMinRatio},
		PuzzleLR:    optim.Cosine{Base: c.PuzzleEmbLR, Warmup: c.LRWarmupSteps, Total: totalSteps, MinRatio: c.LRMinRatio},
		explore:     rng.NewStream(uint64(c.Seed), "exploration"),
		exploreProb: m.Config.HaltExplorationProb,
		backend:     backend,
		last:        make([]bool, batch),
	}
	for _, p := range m.Params() {
		l.Params = append(l.Params, optim.NewParam(p.Name, p.Data, p.Grad(), p.Changed))
	}
	if c.EMA {
		l.EMA = optim.NewEMA(backend, l.Params, c.EMARate)
		l.Adam.Average = l.EMA // Adam takes it along
	}
	return l, nil
}

// Forward runs the first half of a step: refill, one segment with losses and
// gradients, halting. The model is unchanged.
func (l *Learner) Forward(offered Rows) (StepMetrics, error) {
	c, s := l.Carry, l.Segment
	c.refill(s, offered)
	s.load(c.Current)
	for i := range c.Steps {
		c.Steps[i]++
		l.last[i] = int(c.Steps[i]) >= l.Model.Config.HaltMaxSteps
	}
	if err := s.Train(l.last); err != nil {
		return StepMetrics{}, err
	}
	c.halt(s, l.exploreProb, l.explore.Rand)
	return measure(s, c.Steps, c.Halted), nil
}

// Check returns an error that names the first tensor with a NaN or infinite
// gradient, or the loss itself and where it may come from.
func (l *Learner) Check(m StepMetrics) error {
	if v := m.Loss(); math.IsNaN(v) || math.IsInf(v, 0) {
		return errors.Join(&optim.NonFinite{What: "loss", Index: -1, Value: v}, l.origin())
	}
	return l.checkGradients()
}

func (l *Learner) checkGradients() error {
	if _, err := optim.GradNorm(l.backend, l.Params); err != nil {
		return err
	}
	if p := l.Segment.Puzzle; p != nil {
		return optim.Finite(l.backend, "gradient", p.Name, p.Grad())
	}
	return nil
}

// origin looks for what made the loss of the last Forward not finite, in the
// order in which data flows: weights, task embeddings, states, logits, and
// then gradients. It returns nil when all are finite.
func (l *Learner) origin() error {
	if err := optim.FiniteWeights(l.backend, l.Params); err != nil {
		return err
	}
	s := l.Segment
	if s.Puzzle != nil {
		if err := optim.Finite(l.backend, "task embedding", s.Puzzle.Name, s.Puzzle.Data); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		what, name string
		data       kernel.Buf
	}{{"state", "z_L", s.ZL}, {"state", "z_H", s.ZH}, {"output", "logits", s.Logits()}} {
		for i := range f.data.Len() { // of any type, also those that Finite does not take
			if v := f.data.At(i); math.IsNaN(v) || math.IsInf(v, 0) {
				return &optim.NonFinite{What: f.what, Tensor: f.name, Index: i, Value: v}
			}
		}
	}
	return l.checkGradients()
}

// Update runs the second half: the sparse sign update of the task embeddings,
// then Adam-atan2, at the rates of step StepsDone+1.
func (l *Learner) Update() {
	l.StepsDone++
	if p := l.Segment.Puzzle; p != nil {
		l.Sign.Step(l.backend, l.Model.PuzzleTable, l.Model.Config.PuzzleEmbDim, l.Carry.Current.IDs, p.Grad(), l.PuzzleLR.At(l.StepsDone))
	}
	if !l.Frozen {
		l.Adam.Step(l.backend, l.Params, l.LR.At(l.StepsDone))
	}
}

// Step is Forward, Check and Update.
func (l *Learner) Step(offered Rows) (StepMetrics, error) {
	m, err := l.Forward(offered)
	if err != nil {
		return m, err
	}
	if err := l.Check(m); err != nil {
		return m, err
	}
	l.Update()
	return m, nil
}
