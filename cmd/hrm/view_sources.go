package main

import (
	"deeploop/hrm"
	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/predictions"
	"deeploop/internal/runlog"
	"deeploop/view"
	"deeploop/voting"
)

// countForView counts the votes of a predictions file.
func countForView(progress *runlog.Progress, path, data string) (*view.Answers, error) {
	defer progress.End()
	f, err := predictions.Open(path)
	if err != nil {
		return nil, err
	}
	set, err := datasetOf(progress, f, data)
	if err != nil {
		return nil, err
	}
	votes, err := count(progress, f, set)
	if err != nil {
		return nil, err
	}
	return &view.Answers{Meta: f.Meta, Rows: votes.Rows, Dataset: set.dir, Tasks: set.tasks, Votes: votes}, nil
}

// curveForView counts as hrm score --curve does.
func curveForView(s *cli.Streams, progress *runlog.Progress, path, data string) (*view.Curve, error) {
	defer progress.End()
	f, err := predictions.Open(path)
	if err != nil {
		return nil, err
	}
	set, err := datasetOf(progress, f, data)
	if err != nil {
		return nil, err
	}
	r, err := countCurve(s, progress, f, set, scoreOptions{votes: 2, ladder: []int{1, 10}})
	if err != nil {
		return nil, err
	}
	points := func(from []curvePoint, beside int) []view.CurvePoint {
		to := make([]view.CurvePoint, len(from))
		for i, p := range from {
			to[i].N = p.N + beside
			for _, pass := range p.Pass {
				to[i].Scores = append(to[i].Scores, pass.score())
			}
		}
		return to
	}
	return &view.Curve{Copies: points(r.Copies, 1), Segments: points(r.Segments, 0)}, nil
}

// score is what a report of one is made of.
func (s scoreReport) score() voting.Score {
	ratio := func(r ratioReport) voting.Ratio { return voting.Ratio{Solved: r.Solved, Of: r.Of} }
	return voting.Score{K: s.K, AllTests: ratio(s.AllTests), TaskMean: ratio(s.TaskMean), Outputs: ratio(s.Outputs)}
}

// openForView opens the best checkpoint of a run, as hrm eval does.
func openForView(s *cli.Streams, o shownOptions, run, data string) (*view.Model, error) {
	ck, err := checkpoint.OpenFound(run, checkpoint.BestSaved)
	if err != nil {
		return nil, err
	}
	defer ck.Close()
	c, err := hrm.CheckpointConfig(ck)
	if err != nil {
		return nil, err
	}
	d, err := evalDataset(s, evalOptions{data: data}, ck, &c)
	if err != nil {
		return nil, err
	}
	m := &view.Model{Data: d, Checkpoint: ck.Dir(), Step: ck.Step(), Close: func() { d.Close() }}
	if o.compute.Precision == "" {
		o.compute.Precision, o.compute.PrecisionFrom = c.Precision, "as in the training"
	}
	choice, err := o.compute.Open(s, o.kernelGiven)
	if err != nil {
		m.Close()
		return nil, err
	}
	m.Kernel, m.Close = choice.Backend.Name(), func() { choice.Backend.Close(); d.Close() }
	if err := c.Arch.CheckEvaluation(choice.Precision, 1, runlog.PhysicalBytes()); err != nil {
		m.Close()
		return nil, err
	}
	model, weights, err := hrm.LoadModel(ck, c.Arch, choice.Precision, "")
	if err == nil {
		m.Weights = weights
		m.Probe, err = hrm.NewProbe(model, choice.Backend)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	m.Close = func() { m.Probe.Close(); choice.Backend.Close(); d.Close() }
	return m, nil
}
