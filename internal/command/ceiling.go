package command

import (
	"context"
	"fmt"
	"time"

	"deeploop/internal/cli"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/profile"
	"deeploop/internal/train"
)

// watched is a trainer that compares its speed with what the kernel multiplies
// here at best. Probes take some 30 ms every probeEvery, and change nothing that
// is computed.
type watched struct {
	train.Trainer
	probe  *profile.Probe
	probed time.Time
}

const (
	probeEvery   = 10 * time.Second
	probesInARow = 3
)

func watch(t train.Trainer, c pick.Choice) *watched {
	return &watched{Trainer: t, probe: profile.NewProbe(c.Backend, c.Precision, time.Now)}
}

// Step probes before the first step and now and then, some times in a row: on a
// busy machine one of them alone may be far off.
func (w *watched) Step(ctx context.Context, step int) (train.Result, error) {
	if time.Since(w.probed) >= probeEvery {
		for range probesInARow {
			w.probe.Products()
		}
		w.probed = time.Now()
	}
	return w.Trainer.Step(ctx, step)
}

// longStep is a step that somebody might take for a program that hangs.
const longStep = 10 * time.Second

// announce says what a step of so many operations takes where that is long.
func (w *watched) announce(s *cli.Streams, flops float64, smaller string) {
	if flops < 1e11 { // seconds at most
		return
	}
	for range probesInARow {
		w.probe.Products()
	}
	ceiling, _ := w.probe.Ceilings()
	if d := time.Duration(flops / ceiling * float64(time.Second)); ceiling > 0 && d >= longStep {
		s.Infof("note: a step multiplies and adds %.3g GFLOP, at least %v here (%.3g GFLOP/s), and Ctrl-C waits for its end; %s makes it shorter",
			flops/1e9, d.Round(time.Second), ceiling/1e9, smaller)
	}
}

// share says which part of the ceiling so many operations per second are, ""
// where the kernel has no probe.
func (w *watched) share(flops float64) string {
	ceiling, _ := w.probe.Ceilings()
	if ceiling == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%% of ceiling", 100*flops/ceiling)
}
