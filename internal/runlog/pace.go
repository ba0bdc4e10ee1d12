package runlog

import (
	"fmt"
	"time"
)

// pace tells once, early in a run, what a step takes.
type pace struct {
	told  bool
	first int // step
	steps int // after the first, which takes longer than the others
	spent time.Duration
}

const (
	paceSteps   = 3                // that the time of a step is an average of, at least
	paceTime    = 2 * time.Second  // that they take together, at least
	slowStep    = 10 * time.Second // a first step that is told of itself
	worthSaying = 10 * time.Second // of the time left
)

// step takes note of a step and returns, when it is time to tell, the text and
// the time of one.
func (p *pace) step(step int, took time.Duration) (string, time.Duration) {
	switch {
	case p.told:
		return "", 0
	case p.first == 0 && took >= slowStep:
		p.told = true
		return fmt.Sprintf("the first step took %s", stepTime(took)), took
	case p.first == 0:
		p.first = step
		return "", 0
	}
	p.steps++
	p.spent += took
	if p.steps < paceSteps || p.spent < paceTime {
		return "", 0
	}
	p.told = true
	each := p.spent / time.Duration(p.steps)
	return fmt.Sprintf("a step takes %s (mean of %d)", stepTime(each), p.steps), each
}

func stepTime(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return duration(d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	}
	return fmt.Sprintf("%.3g ms", 1000*d.Seconds())
}
