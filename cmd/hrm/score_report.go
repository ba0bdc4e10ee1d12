package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"deeploop/arc"
	"deeploop/internal/cli"
	"deeploop/internal/predictions"
	"deeploop/voting"
)

// report is everything hrm score prints; its JSON form is the document of
// --json.
type report struct {
	Predictions *predictionsReport `json:"predictions,omitempty"`
	Dataset     *datasetReport     `json:"dataset,omitempty"`
	Answers     string             `json:"answers,omitempty"` // file of --answers
	Truth       string             `json:"truth,omitempty"`   // path of --truth
	// TruthSHA256 is voting.HashTruth: the version of the right answers; "" where
	// the inputs are not known. TruthOutputsSHA256 is voting.HashOutputs.
	TruthSHA256        string `json:"truth_sha256"`
	TruthOutputsSHA256 string `json:"truth_outputs_sha256"`

	Coverage           voting.Coverage `json:"coverage"`
	Votes              *votesReport    `json:"votes,omitempty"`
	Headline           scoreReport     `json:"headline"`
	Ladder             []scoreReport   `json:"ladder"`
	Curve              *curveReport    `json:"curve,omitempty"`               // with --curve
	Submission         string          `json:"submission,omitempty"`          // file written
	SubmissionReplaced bool            `json:"submission_replaced,omitempty"` // it was there before
	Tasks              []taskReport    `json:"tasks,omitempty"`               // with --per-task
	Warnings           []string        `json:"warnings"`

	warnings []string // beside those about coverage
	perTask  bool
}

type predictionsReport struct {
	File             string `json:"file"`
	Rows             int    `json:"rows"`
	PadRows          int    `json:"pad_rows"`
	Checkpoint       string `json:"checkpoint"`
	CheckpointDigest string `json:"checkpoint_digest"`
	Step             int64  `json:"step"`
	Weights          string `json:"weights"`
	HaltSteps        int    `json:"halt_steps"`
	Augmentations    int    `json:"augmentations"`
}

type datasetReport struct {
	Path string `json:"path"`
	Hash string `json:"hash"` // "" for a dataset of the reference builder
}

type votesReport struct {
	Total   int `json:"total"`
	Fewest  int `json:"fewest"` // for one test input
	Most    int `json:"most"`
	Answers int `json:"answers"` // distinct ones, over all test inputs
}

// scoreReport is a voting.Score with percentages beside numerator and
// denominator.
type scoreReport struct {
	K        int         `json:"k"`
	AllTests ratioReport `json:"all_tests"`
	TaskMean ratioReport `json:"task_mean"`
	Outputs  ratioReport `json:"outputs"`
}

type ratioReport struct {
	Percent *float64 `json:"percent"` // null of nothing
	Solved  float64  `json:"solved"`
	Of      int      `json:"of"`
}

type taskReport struct {
	ID    string       `json:"id"`
	Tests []testReport `json:"tests"`
}

type testReport struct {
	voting.TestResult
	Votes   *int              `json:"votes,omitempty"`
	Answers *int              `json:"distinct_answers,omitempty"`
	Top     []candidateReport `json:"top,omitempty"`
}

type candidateReport struct {
	Rows  int      `json:"rows"`
	Cols  int      `json:"cols"`
	Votes int      `json:"votes"`
	MeanQ *float64 `json:"mean_q"` // null when it is not a number
}

func newReport(o scoreOptions, tasks []arc.Task, results []voting.TaskResult, ladder []int) *report {
	r := &report{
		TruthSHA256:        voting.HashTruth(tasks),
		TruthOutputsSHA256: voting.HashOutputs(tasks),
		Coverage:           voting.Cover(results),
		Headline:           reportScore(voting.ScoreAt(results, o.votes)),
		perTask:            o.perTask,
	}
	for _, s := range voting.Ladder(results, ladder) {
		r.Ladder = append(r.Ladder, reportScore(s))
	}
	if !o.perTask {
		return r
	}
	for _, t := range results {
		tr := taskReport{ID: t.ID}
		for _, test := range t.Tests {
			tr.Tests = append(tr.Tests, testReport{TestResult: test})
		}
		r.Tasks = append(r.Tasks, tr)
	}
	return r
}

func reportScore(s voting.Score) scoreReport {
	ratio := func(r voting.Ratio) ratioReport {
		out := ratioReport{Solved: r.Solved, Of: r.Of}
		if r.Of > 0 {
			p := r.Percent()
			out.Percent = &p
		}
		return out
	}
	return scoreReport{K: s.K, AllTests: ratio(s.AllTests), TaskMean: ratio(s.TaskMean), Outputs: ratio(s.Outputs)}
}

// topAnswers is how many answers of a test input --per-task --json lists.
const topAnswers = 5

// addVotes adds what only predictions have.
func (r *report) addVotes(v *voting.Votes, f *predictions.File, set *testSet) {
	r.Predictions = &predictionsReport{
		File: f.Path, Rows: v.Rows, PadRows: v.PadRows, Checkpoint: f.Meta.Checkpoint, CheckpointDigest: f.Meta.CheckpointDigest,
		Step: f.Meta.Step, Weights: f.Meta.Weights, HaltSteps: f.Meta.HaltSteps, Augmentations: f.Meta.Augmentations,
	}
	r.Dataset = &datasetReport{Path: set.dir, Hash: set.hash}
	c := votesReport{Total: v.Rows, Fewest: math.MaxInt}
	for i, t := range v.Tasks {
		for j, test := range t.Tests {
			c.Fewest, c.Most = min(c.Fewest, test.Votes), max(c.Most, test.Votes)
			c.Answers += len(test.Ranked)
			if !r.perTask {
				continue
			}
			tr := &r.Tasks[i].Tests[j]
			votes, answers := test.Votes, len(test.Ranked)
			tr.Votes, tr.Answers = &votes, &answers
			for _, cand := range test.Ranked[:min(topAnswers, answers)] {
				g := cand.Grid()
				cr := candidateReport{Rows: g.Rows, Cols: g.Cols, Votes: cand.Count}
				if q := cand.MeanQ; !math.IsNaN(q) {
					cr.MeanQ = &q
				}
				tr.Top = append(tr.Top, cr)
			}
		}
	}
	r.Votes = &c
	if v.NaNHalts > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d answers have halt logits that are not numbers; they rank last among answers with as many votes", v.NaNHalts))
	}
}

// compare warns about differences between the dataset's right answers and
// those at path.
func (r *report) compare(tasks []arc.Task, path string) error {
	other, warnings, err := loadTruth(path)
	if err != nil {
		return err
	}
	r.Truth = path
	r.warnings = append(r.warnings, warnings...)
	only, _, changed := voting.Compare(tasks, other)
	if len(only) > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d tasks of the dataset are not in %s: %s", len(only), path, some(only)))
	}
	if len(changed) > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d test pairs of the dataset differ from %s: %s; the score is for the dataset's", len(changed), path, some(inputNames(changed))))
	}
	return nil
}

func inputNames(inputs []voting.TestInput) []string {
	names := make([]string, len(inputs))
	for i, t := range inputs {
		names[i] = fmt.Sprintf("%s test[%d]", t.Task, t.Index)
	}
	return names
}

// allWarnings puts coverage first.
func (r *report) allWarnings() []string {
	all := []string{}
	if n := len(r.Coverage.MissingTasks); n > 0 {
		all = append(all, fmt.Sprintf("%d %s missing, counted as wrong: %s", n, plural(n, "task"), some(r.Coverage.MissingTasks)))
	}
	if n := len(r.Coverage.MissingInputs); n > 0 {
		all = append(all, fmt.Sprintf("%d %s of other tasks missing, counted as wrong: %s", n, plural(n, "test input"), some(inputNames(r.Coverage.MissingInputs))))
	}
	return append(all, r.warnings...)
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func (r *report) writeJSON(s *cli.Streams) error {
	r.Warnings = r.allWarnings()
	enc := json.NewEncoder(s.Out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

func (r *report) writeText(s *cli.Streams) error {
	for _, w := range r.allWarnings() {
		s.Warnf("%s", w)
	}
	var b strings.Builder
	if p := r.Predictions; p != nil {
		fmt.Fprintf(&b, "predictions   %s\n", p.File)
		if p.Weights != "" {
			fmt.Fprintf(&b, "              %s weights of step %d, %d passes a row\n", p.Weights, p.Step, p.HaltSteps)
		}
		fmt.Fprintf(&b, "dataset       %s", r.Dataset.Path)
		if r.Dataset.Hash != "" {
			fmt.Fprintf(&b, ", hash %s", r.Dataset.Hash)
		}
		b.WriteByte('\n')
		fmt.Fprintf(&b, "votes         %d rows, %d to %d a test input, %d different answers\n", r.Votes.Total, r.Votes.Fewest, r.Votes.Most, r.Votes.Answers)
	} else {
		fmt.Fprintf(&b, "answers       %s\ntruth         %s\n", r.Answers, r.Truth)
	}
	c := r.Coverage
	if r.TruthSHA256 != "" {
		fmt.Fprintf(&b, "truth sha256  %s\n", r.TruthSHA256)
	}
	fmt.Fprintf(&b, "outputs only  %s\n", r.TruthOutputsSHA256)
	fmt.Fprintf(&b, "coverage      %d of %d tasks, %d of %d test inputs", c.TasksAnswered, c.Tasks, c.Answered, c.TestInputs)
	if c.Unlabelled > 0 {
		fmt.Fprintf(&b, "; %d unlabelled, in no denominator", c.Unlabelled)
	}
	b.WriteString("\n\n")
	if r.perTask {
		r.writeTasks(&b)
	}
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "\tall tests of a task\tmean over tasks\toutputs")
	for _, rung := range r.Ladder {
		writeScore(w, rung)
	}
	w.Flush()
	b.WriteByte('\n')
	w = tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	writeScore(w, r.Headline)
	w.Flush()
	if r.Curve != nil {
		r.Curve.write(&b)
	}
	switch {
	case r.SubmissionReplaced:
		fmt.Fprintf(&b, "submission: replaced %s\n", r.Submission)
	case r.Submission != "":
		fmt.Fprintf(&b, "submission written to %s\n", r.Submission)
	}
	_, err := fmt.Fprint(s.Out, b.String())
	return err
}

func writeScore(w *tabwriter.Writer, s scoreReport) {
	fmt.Fprintf(w, "pass@%d\t%s\t%s\t%s\n", s.K,
		s.AllTests.text("%.0f/%d"), s.TaskMean.text("%.2f/%d"), s.Outputs.text("%.0f/%d"))
}

func (r ratioReport) text(share string) string {
	if r.Percent == nil {
		return "no labels"
	}
	return fmt.Sprintf("%.2f%% ("+share+")", *r.Percent, r.Solved, r.Of)
}

func (r *report) writeTasks(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "task\ttest\tright answer\tvotes\tanswers\tbest answer")
	for _, t := range r.Tasks {
		for i, test := range t.Tests {
			right := fmt.Sprintf("rank %d", test.Rank)
			switch {
			case !test.Labelled:
				right = "not known"
			case !test.Answered:
				right = "missing"
			case test.Rank == 0:
				right = "not among them"
			}
			fmt.Fprintf(w, "%s\t%d\t%s", t.ID, i, right)
			if test.Votes != nil {
				fmt.Fprintf(w, "\t%d\t%d", *test.Votes, *test.Answers)
			} else {
				fmt.Fprint(w, "\t\t")
			}
			if len(test.Top) > 0 {
				c := test.Top[0]
				fmt.Fprintf(w, "\t%dx%d, %d votes", c.Rows, c.Cols, c.Votes)
				if c.MeanQ != nil {
					fmt.Fprintf(w, ", q %.4f", *c.MeanQ)
				}
			}
			fmt.Fprintln(w)
		}
	}
	w.Flush()
	b.WriteByte('\n')
}
