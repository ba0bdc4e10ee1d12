package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"deeploop/hrm"
	"deeploop/internal/cli"
	"deeploop/internal/files"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/profile"
	"deeploop/internal/train"
)

// profileFile is the profile of a run's last session, in the run's folder.
const profileFile = "profile.json"

// profileHelp is the text of --profile.
const profileHelp = "print at the end where the time went: every kernel, and what is left for graph and Go"

// profiler records what a command computes. A nil one, without --profile, does
// nothing.
type profiler struct {
	rec    *profile.Recorder
	probe  *profile.Probe
	probed time.Time
}

// newProfiler stands in front of an open backend, nil unless asked for.
func newProfiler(asked bool, c pick.Choice) *profiler {
	if !asked {
		return nil
	}
	return &profiler{rec: profile.New(c.Backend, time.Now), probe: profile.NewProbe(c.Backend, c.Precision, time.Now)}
}

// backend is what to compute with, in place of that of c.
func (p *profiler) backend(c pick.Choice) kernel.Backend {
	if p == nil {
		return c.Backend
	}
	return p.rec
}

// ceilings probes once a second at most, which costs some percent of the time
// outside of what is recorded.
func (p *profiler) ceilings() {
	if time.Since(p.probed) >= time.Second {
		p.probe.Products()
		p.probe.Copy()
		p.probed = time.Now()
	}
}

// print shows the profile of what was done, if anything was.
func (p *profiler) print(s *cli.Streams, unit string) (r profile.Report, err error) {
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

// profiledJob is a job whose steps a profiler records; evaluations it does not.
type profiledJob struct {
	*hrm.Job
	*profiler
	steps int
}

// Step records a step. The first of several is left out: it makes memory.
func (j *profiledJob) Step(ctx context.Context, step int) (train.Result, error) {
	if j.profiler == nil {
		return j.Job.Step(ctx, step)
	}
	if j.steps++; j.steps == 2 {
		j.rec.Take()
	}
	j.ceilings()
	j.rec.Start()
	r, err := j.Job.Step(ctx, step)
	if err == nil {
		j.rec.Stop(1)
	}
	return r, err
}

// finish prints the profile and leaves it in the run's folder.
func (j *profiledJob) finish(s *cli.Streams, run string) error {
	r, err := j.print(s, "training step")
	if err != nil || r.Units == 0 {
		return err
	}
	if err := files.Write(filepath.Join(run, profileFile), func(w io.Writer) error { return r.WriteJSON(w) }); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}

// batches records an evaluation between calls of the returned function, which
// reports progress after every batch of so many segments.
func (p *profiler) batches(segments int, progress func(done, total int)) func(done, total int) {
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
