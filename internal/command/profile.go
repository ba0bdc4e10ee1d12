package command

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"deeploop/internal/cli"
	"deeploop/internal/files"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/profile"
	"deeploop/internal/train"
)

// ProfileFile is the profile of a run's last session, in the run's folder.
const ProfileFile = "profile.json"

// ProfileHelp is the text of --profile.
const ProfileHelp = "print at the end where the time went: every kernel, and what is left for graph and Go"

// Profiler records what a command computes. A nil one, without --profile, does
// nothing.
type Profiler struct {
	rec    *profile.Recorder
	probe  *profile.Probe
	probed time.Time
}

// NewProfiler stands in front of an open backend; it returns nil unless asked
// for.
func NewProfiler(asked bool, c pick.Choice) *Profiler {
	if !asked {
		return nil
	}
	return &Profiler{rec: profile.New(c.Backend, time.Now), probe: profile.NewProbe(c.Backend, c.Precision, time.Now)}
}

// Backend is what to compute with, in place of that of c.
func (p *Profiler) Backend(c pick.Choice) kernel.Backend {
	if p == nil {
		return c.Backend
	}
	return p.rec
}

// ceilings probes once a second at most, which costs some percent of the time
// outside of what is recorded.
func (p *Profiler) ceilings() {
	if time.Since(p.probed) >= time.Second {
		p.probe.Products()
		p.probe.Copy()
		p.probed = time.Now()
	}
}

// Print shows the profile of what was done, if anything was. unit is what was
// done, such as "training step".
func (p *Profiler) Print(s *cli.Streams, unit string) (r profile.Report, err error) {
	if p == nil {
		return r, nil
	}
	r = p.rec.Report(unit, p.probe)
	if r.Units == 0 {
		fmt.Fprintf(s.Out, "profile: no %s was finished\n", unit)
		return r, nil
	}
	return r, r.Write(s.Out)
}

// profiled is a trainer whose steps a profiler records; evaluations it does not.
type profiled struct {
	train.Trainer
	*Profiler
	steps int
}

// Step records a step. The first of several is left out: it makes memory.
func (j *profiled) Step(ctx context.Context, step int) (train.Result, error) {
	if j.Profiler == nil {
		return j.Trainer.Step(ctx, step)
	}
	if j.steps++; j.steps == 2 {
		j.rec.Take()
	}
	j.ceilings()
	j.rec.Start()
	r, err := j.Trainer.Step(ctx, step)
	if err == nil {
		j.rec.Stop(1)
	}
	return r, err
}

// finish prints the profile and leaves it in the run's folder.
func (j *profiled) finish(s *cli.Streams, run string) error {
	r, err := j.Print(s, "training step")
	if err != nil || r.Units == 0 {
		return err
	}
	if err := files.Write(filepath.Join(run, ProfileFile), func(w io.Writer) error { return r.WriteJSON(w) }); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}

// Batches records an evaluation between calls of the returned function, which
// reports progress after every batch of so many segments.
func (p *Profiler) Batches(segments int, progress func(done, total int)) func(done, total int) {
	if p == nil {
		return progress
	}
	p.ceilings()
	p.rec.Start()
	return func(done, total int) {
		p.rec.Stop(segments)
		progress(done, total)
		p.ceilings()
		p.rec.Start()
	}
}
