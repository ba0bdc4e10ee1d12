package solve

import (
	"time"

	"deeploop/hrm"
	"deeploop/internal/optim"
)

// budget says how far a training has come and whether there is room for
// another step. Steps, where given, are the measure of progress, else time.
type budget struct {
	steps   int
	limit   time.Duration // 0: none
	reserve time.Duration // of the limit, for the votes
	now     func() time.Time
	begun   time.Time

	mark    time.Time     // begin of the present step
	longest time.Duration // step so far
}

// progress is from 0 to 1.
func (b *budget) progress(done int) float64 {
	if b.steps > 0 {
		return min(1, float64(done)/float64(b.steps))
	}
	return min(1, float64(b.now().Sub(b.begun))/float64(max(1, b.limit-b.reserve)))
}

// more reports whether another step fits. The first always does.
func (b *budget) more(done int) bool {
	now := b.now()
	if !b.mark.IsZero() {
		b.longest = max(b.longest, now.Sub(b.mark))
	}
	b.mark = now
	if b.steps > 0 && done >= b.steps {
		return false
	}
	return done == 0 || b.limit == 0 || now.Add(b.longest).Before(b.begun.Add(b.limit-b.reserve))
}

// late reports whether the limit has passed.
func (b *budget) late() bool { return b.limit > 0 && b.now().Sub(b.begun) >= b.limit }

// warmupShare of the budget ends the warm-up at the latest, for machines that
// make few steps.
const warmupShare = 0.1

// setRates sets the rates of the step after done: the warm-up over
// lr_warmup_steps, then half a cosine over the budget.
func setRates(l *hrm.Learner, c hrm.TrainConfig, done int, progress float64) {
	factor := max(float64(done+1)/float64(max(1, c.LRWarmupSteps)), progress/warmupShare)
	if factor >= 1 {
		factor = optim.Cosine{Base: 1, Total: cosineSteps, MinRatio: c.LRMinRatio}.At(int(progress * cosineSteps))
	}
	l.LR = constant(c.LR * factor)
	l.PuzzleLR = constant(c.PuzzleEmbLR * factor)
	if l.EMA != nil { // an average over the steps made, while they are few
		l.EMA.Rate = min(c.EMARate, float64(1+done)/float64(10+done))
	}
}

// cosineSteps are the steps in which the cosine falls.
const cosineSteps = 1 << 20

// constant is a rate that does not depend on the step.
func constant(rate float64) optim.Cosine { return optim.Cosine{Base: rate, MinRatio: 1} }
