package main

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"deeploop/hrm"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/files"
	"deeploop/voting"
)

// scoreOptions are the flags of hrm score.
type scoreOptions struct {
	predictions, data string
	answers, truth    string
	votes             int
	ladder            []int
	json, perTask     bool
	submission        string
	curve             string
	watch             string
	augmentations     int // with watch
	threads           int // with watch
	force             bool

	ladderGiven bool
	replaces    bool // submission is a file already
}

func newScoreCmd(s *cli.Streams) *cobra.Command {
	var o scoreOptions
	cmd := &cobra.Command{
		Use:   "score",
		Short: "Count votes and score predictions, or anyone's submission",
		Long: `Count the votes of the predictions that hrm eval made, and score them.

Every augmented copy of a test input votes for the answer it gives, with its
augmentation undone. Answers are ranked by votes, then by mean halt
probability, then by which came first in the file. pass@K is what K answers
per test input solve, in three conventions: tasks all of whose test inputs are
solved; the mean over tasks of the fraction solved; test inputs solved. What
was not predicted counts as wrong.

--curve draws pass@K against the number of augmented copies that vote and,
after "hrm eval --after 1,2,4", against the number of segments; the numbers are
printed too. A picture shows tasks all of whose test inputs are solved.

--watch follows a run while it trains: each checkpoint that it saves is
evaluated, as hrm eval does, and scored, a line for each with the share of tasks
all of whose test inputs are solved. It ends with the training.

Predictions of the reference code (step_N_all_preds.*, PyTorch's files) need
--data, the dataset's folder or its identifiers.json; the ground truth is theirs.

With --answers a file in the form of Kaggle's ARC Prize is scored instead.`,
		Example: `  hrm score                   # the newest evaluation below runs/
  hrm score --submission submission.json
  hrm score --curve pass.png
  hrm score --watch runs/arc1 --augmentations 10
  hrm score --predictions step_414456_all_preds.0 --data data/arc-aug-1000
  hrm score --answers submission.json --truth arc-agi-1/evaluation`,
		RunE: func(c *cobra.Command, _ []string) error {
			o.ladderGiven = c.Flags().Changed("ladder")
			if err := watchAlone(c.Flags().Changed); err != nil {
				return err
			}
			if o.watch != "" {
				return watchRun(c.Context(), s, o)
			}
			return scoreRun(s, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.predictions, "predictions", "", "`FILE` of predictions, the reference's step_N_all_preds.0 (all parts are taken) too, or a folder: the newest in it (default the newest below runs/)")
	f.StringVar(&o.data, "data", "", "dataset `DIR` the predictions are of, or an identifiers.json (default the one they name)")
	f.IntVar(&o.votes, "votes", 2, "`K` of the headline pass@K: answers per test input")
	f.IntSliceVar(&o.ladder, "ladder", []int{1, 2, 10, 100, 1000}, "`K,K,...` to print pass@K for")
	f.BoolVar(&o.json, "json", false, "print one JSON document")
	f.BoolVar(&o.perTask, "per-task", false, "print every test input's result")
	f.StringVar(&o.submission, "submission", "", "write the two best answers of every test input to this `FILE`")
	f.BoolVar(&o.force, "force", false, "with --submission or --curve: replace a FILE that is something else too")
	f.StringVar(&o.curve, "curve", "", "draw pass@K against augmented copies and segments into this `FILE`: .png, .svg or .pdf")
	f.StringVar(&o.watch, "watch", "", "evaluate and score the checkpoints of this `RUN` as it saves them")
	f.IntVar(&o.augmentations, "augmentations", hrm.AllAugmentations, "with --watch: augmented copies of each test beside the original; -1 is all")
	f.IntVar(&o.threads, "threads", 1, "with --watch: compute threads")
	f.StringVar(&o.answers, "answers", "", "score this submission `FILE`; needs --truth")
	f.StringVar(&o.truth, "truth", "", "ground truth `DIR|FILE`: tasks, Kaggle files or a dataset; with predictions it is only compared with the dataset's")
	return cmd
}

func scoreRun(s *cli.Streams, o scoreOptions) error {
	if err := o.checkLadder(); err != nil {
		return err
	}
	progress := command.NewProgress(s)
	progress.Patience = time.Second
	defer progress.End()
	var r *report
	var err error
	if o.submission != "" && o.answers == "" {
		if o.replaces, err = files.Check(o.submission, files.Submission, o.force, false); err != nil {
			return fmt.Errorf("write submission: %w", err)
		}
	}
	if o.curve != "" {
		if err := checkCurve(o); err != nil {
			return err
		}
	}
	if o.answers != "" {
		r, err = scoreAnswers(o)
	} else {
		r, err = scorePredictions(s, progress, o)
	}
	progress.End()
	if err != nil {
		return err
	}
	if o.json {
		return r.writeJSON(s)
	}
	return r.writeText(s)
}

// checkLadder checks and orders what pass@K is asked for.
func (o *scoreOptions) checkLadder() error {
	if o.votes < 1 {
		return cli.Usagef("--votes is %d, expected at least 1", o.votes)
	}
	for _, k := range o.ladder {
		if k < 1 {
			return cli.Usagef("--ladder has %d, expected numbers of at least 1", k)
		}
	}
	slices.Sort(o.ladder)
	o.ladder = slices.Compact(o.ladder)
	return nil
}

// writeSubmission writes the file whole or not at all.
func writeSubmission(path string, sub voting.Submission) error {
	var b bytes.Buffer
	if err := sub.Write(&b); err != nil {
		return err
	}
	if err := files.WriteFile(path, b.Bytes()); err != nil {
		return fmt.Errorf("write submission %s: %w", path, err)
	}
	return nil
}
