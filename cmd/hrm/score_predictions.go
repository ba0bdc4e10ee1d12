package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"deeploop/arc"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/predictions"
	"deeploop/internal/runlog"
	"deeploop/voting"
)

// scorePredictions counts the votes of a predictions file and scores them.
func scorePredictions(s *cli.Streams, progress *runlog.Progress, o scoreOptions) (*report, error) {
	path, how, err := findPredictions(o.predictions)
	if err != nil {
		return nil, err
	}
	if how != "" {
		s.Infof("predictions: %s (%s)", path, how)
	}
	progress.Doing("opening " + path)
	f, err := predictions.Open(path)
	if err != nil {
		return nil, command.Instead(err, "score", path, command.Predictions)
	}
	if n := f.Parts(); n > 1 {
		s.Infof("predictions: the %d parts beside it together", n)
	}
	set, err := datasetOf(progress, f, o.data)
	if err != nil {
		return nil, err
	}
	votes, err := count(progress, f, set)
	if err != nil {
		return nil, err
	}
	r := newReport(o, set.tasks, votes.Results(), o.ladder)
	r.addVotes(votes, f, set)
	if o.truth != "" {
		if err := r.compare(set.tasks, o.truth); err != nil {
			return nil, err
		}
	}
	if o.curve != "" {
		if r.Curve, err = drawCurve(s, progress, f, set, o); err != nil {
			return nil, err
		}
	}
	if o.submission != "" {
		if err := writeSubmission(o.submission, votes.Submission()); err != nil {
			return nil, err
		}
		r.Submission, r.SubmissionReplaced = o.submission, o.replaces
	}
	return r, nil
}

// findPredictions resolves --predictions. how says why the file was taken,
// where the user did not name it.
func findPredictions(given string) (path, how string, err error) {
	root := given
	if given == "" {
		root = "runs"
	} else if info, err := os.Stat(given); err != nil {
		if parts := referenceParts(given); len(parts) > 0 {
			return parts[0], "for " + given, nil
		}
		return "", "", &cli.UsageError{Err: fmt.Errorf("open predictions: %w", err)}
	} else if !info.IsDir() {
		return given, "", nil
	}
	var newest time.Time
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != predictions.FileName && d.Name() != strings.TrimSuffix(predictions.FileName, ".zst") && !strings.HasSuffix(d.Name(), "_all_preds.0") {
			return nil // what cannot be read holds no predictions
		}
		if info, err := d.Info(); err == nil && (path == "" || info.ModTime().After(newest)) {
			path, newest = p, info.ModTime()
		}
		return nil
	})
	if err != nil {
		return "", "", err
	}
	if path == "" {
		err := cli.Usagef("no %s below %s; run hrm eval first, or name one with --predictions", predictions.FileName, root)
		return "", "", command.Instead(err, "score", given, command.Predictions)
	}
	return path, "the newest below " + root, nil
}

// referenceParts resolves what people call the predictions of the reference,
// such as 'step_9000_all_preds.*' or step_9000: its files, which predictions.Open
// takes together.
func referenceParts(given string) []string {
	for _, pattern := range []string{given, given + ".0", given + "_all_preds.0"} {
		parts, err := filepath.Glob(pattern)
		if err == nil && len(parts) > 0 && strings.Contains(filepath.Base(parts[0]), "_all_preds.") {
			return parts
		}
	}
	return nil
}

// datasetOf finds the ground truth of a predictions file: in the dataset the
// file names, which must be the very one, or in the one given.
func datasetOf(progress *runlog.Progress, f *predictions.File, data string) (*testSet, error) {
	dir := data
	if dir == "" {
		dir = f.Meta.Dataset
		if dir == "" {
			return nil, cli.Usagef("score %s: the file does not say which dataset it is of; give --data DIR, or --data identifiers.json (hrm build-data makes a dataset from tasks)", f.Path)
		}
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if data == "" {
			return nil, cli.Usagef("score %s: its dataset %s is gone or was moved; give its place with --data DIR", f.Path, dir)
		}
		return nil, cli.Usagef("score %s: no dataset %s", f.Path, dir)
	}
	if file, ok := identifiersFile(dir); ok {
		return foreignSet(progress, f, file)
	}
	set, err := openTestSet(dir)
	if err != nil {
		return nil, err
	}
	if f.Meta.DatasetHash != "" && f.Meta.DatasetHash != set.hash {
		if data == "" {
			return nil, cli.Usagef("score %s: its dataset %s has changed since (hash %s, predictions are of %s); build it as it was, or run hrm eval again", f.Path, dir, set.hash, f.Meta.DatasetHash)
		}
		return nil, cli.Usagef("score %s: the predictions are of another dataset than %s (hash %s, expected %s)", f.Path, dir, set.hash, f.Meta.DatasetHash)
	}
	return set, voting.CheckTruth(set.tasks)
}

// batchRows is how many rows are read at a time.
const batchRows = 1024

// foreignSet takes the ground truth from the rows of a file of the reference
// code, and what identifiers stand for from their names.
func foreignSet(progress *runlog.Progress, f *predictions.File, identifiers string) (*testSet, error) {
	names, augs, err := readNames(identifiers)
	if err != nil {
		return nil, err
	}
	if !f.HasTokens() {
		return nil, cli.Usagef("score %s: %s holds no ground truth and the file has no inputs and labels", f.Path, identifiers)
	}
	side, err := sideOf(f)
	if err != nil {
		return nil, err
	}
	g := voting.NewGatherer(names, side)
	err = eachBatch(progress.Counter("reading the ground truth"), f, []func() (*predictions.Tokens, error){f.Inputs, f.Labels}, func(lo, hi int, tokens [][]uint8) error {
		return g.Add(f.Identifiers[lo:hi], tokens[0], tokens[1])
	})
	if err != nil {
		return nil, inFile(f, err)
	}
	tasks, err := g.Tasks()
	if err != nil {
		return nil, inFile(f, err)
	}
	place := make(map[string]int, len(tasks))
	for i, t := range tasks {
		place[t.ID] = i
	}
	set := &testSet{dir: identifiers, tasks: tasks, copies: &copies{}, merged: true}
	for id, n := range names {
		if at, ok := place[n.Task]; ok && id > 0 {
			set.copies.set(int32(id), at, augs[id])
		}
	}
	return set, nil
}

func inFile(f *predictions.File, err error) error {
	var bad *predictions.Error
	if errors.As(err, &bad) {
		return err
	}
	return fmt.Errorf("score %s: %w", f.Path, err)
}

// sideOf returns the side of the canvases.
func sideOf(f *predictions.File) (int, error) {
	for side := 1; side*side <= f.SeqLen; side++ {
		if side*side == f.SeqLen && side <= 255 {
			return side, nil
		}
	}
	return 0, cli.Usagef("score %s: rows have %d tokens, expected a square canvas such as 900 (30x30) or 100 (10x10)", f.Path, f.SeqLen)
}

// count counts all votes.
func count(progress *runlog.Progress, f *predictions.File, set *testSet) (*voting.Votes, error) {
	c, err := newCounter(f, set)
	if err != nil {
		return nil, err
	}
	if err := eachRows(progress, f, set, c.Add); err != nil {
		return nil, err
	}
	return c.Votes(), nil
}

// newCounter makes a counter for the canvases of the predictions.
func newCounter(f *predictions.File, set *testSet) (*voting.Counter, error) {
	side, err := sideOf(f)
	if err != nil {
		return nil, err
	}
	if err := gridsFit(f, set.tasks, side); err != nil {
		return nil, err
	}
	return voting.NewCounter(set.tasks, set.copies, side, runtime.GOMAXPROCS(0)), nil
}

// eachRows hands over the rows of a file in batches.
func eachRows(progress *runlog.Progress, f *predictions.File, set *testSet, add func(voting.Rows) error) error {
	indexed := f.TestIndex != nil && !set.merged
	open := []func() (*predictions.Tokens, error){f.Preds}
	if !indexed {
		if !f.HasTokens() {
			return cli.Usagef("score %s: without inputs it cannot be told which test input a row is of", f.Path)
		}
		open = append(open, f.Inputs)
	}
	err := eachBatch(progress.Counter("counting votes"), f, open, func(lo, hi int, tokens [][]uint8) error {
		b := voting.Rows{Identifiers: f.Identifiers[lo:hi], QHalt: f.QHalt[lo:hi], Preds: tokens[0]}
		if indexed {
			b.TestIndex = f.TestIndex[lo:hi]
		} else {
			b.Inputs = tokens[1]
		}
		return add(b)
	})
	if err != nil {
		return inFile(f, err)
	}
	return nil
}

// gridsFit refuses predictions on canvases that cannot hold the test set.
func gridsFit(f *predictions.File, tasks []arc.Task, side int) error {
	for _, t := range tasks {
		for i, p := range t.Test {
			if p.Input.Rows > side || p.Input.Cols > side {
				return cli.Usagef("score %s: its canvases are %dx%d, test input %d of task %s is %dx%d: these predictions are of another dataset",
					f.Path, side, side, i, t.ID, p.Input.Rows, p.Input.Cols)
			}
		}
	}
	return nil
}

// batch is the next rows of some token tensors.
type batch struct {
	lo, hi int
	tokens [][]uint8
	err    error
}

// eachBatch reads token tensors side by side, a few rows at a time, while the
// rows before are visited. progress is called with the rows that were.
func eachBatch(progress func(done, total int), f *predictions.File, open []func() (*predictions.Tokens, error), visit func(lo, hi int, tokens [][]uint8) error) error {
	streams := make([]*predictions.Tokens, len(open))
	for i, o := range open {
		t, err := o()
		if err != nil {
			return err
		}
		defer t.Close()
		streams[i] = t
	}
	free, full, stop := make(chan [][]uint8, 2), make(chan batch, 2), make(chan struct{})
	for range cap(free) {
		buf := make([][]uint8, len(open))
		for i := range buf {
			buf[i] = make([]uint8, min(batchRows, f.Rows)*f.SeqLen)
		}
		free <- buf
	}
	finished := make(chan struct{})
	defer func() { close(stop); <-finished }() // before the streams close
	go func() {
		defer close(finished)
		defer close(full)
		for lo := 0; lo < f.Rows; {
			var buf [][]uint8
			select {
			case buf = <-free:
			case <-stop:
				return
			}
			b := batch{lo: lo, hi: min(lo+batchRows, f.Rows)}
			for i, s := range streams {
				tokens := buf[i][:(b.hi-lo)*f.SeqLen]
				if _, err := s.Read(tokens); err != nil {
					b.err = err
				}
				b.tokens = append(b.tokens, tokens)
			}
			full <- b
			if b.err != nil {
				return
			}
			lo = b.hi
		}
	}()
	for b := range full {
		if b.err != nil {
			return b.err
		}
		if err := visit(b.lo, b.hi, b.tokens); err != nil {
			return err
		}
		progress(b.hi, f.Rows)
		free <- b.tokens
	}
	return nil
}
