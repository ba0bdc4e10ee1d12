package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"deeploop/arc"
	"deeploop/hrm/solve"
	"deeploop/internal/cli"
	"deeploop/internal/files"
	"deeploop/internal/wording"
	"deeploop/voting"
)

// showAnswers draws the two attempts at each test input with their votes.
func showAnswers(w io.Writer, d *solved, text arc.TextOptions) error {
	return arc.WriteSheetText(w, d.sheet(false), text)
}

// treatmentsText tells treatments of colours apart, where there are several:
// what shuffling leaves learnable says whether the rule names colours.
func treatmentsText(a *solve.Answers) string {
	if len(a.Treatments) < 2 {
		return ""
	}
	var parts []string
	for _, t := range []solve.Treatment{solve.Keep, solve.Free, solve.Any, solve.Copied} {
		if share, drawn := a.Treatments[t]; drawn {
			parts = append(parts, fmt.Sprintf("%s %.0f%%", t, 100*share))
		}
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// sheet draws a task's attempts, after its demonstrations where asked for.
func (d *solved) sheet(demonstrations bool) *arc.Sheet {
	a := d.answers
	title := fmt.Sprintf("%s: %s in %.0f s, %.0f%% of training grids right%s", d.task.Title(), wording.Count(a.Steps, "step"), a.TrainSeconds, 100*a.Exact, treatmentsText(a))
	if d.kept {
		title += ", answered before"
	}
	s := &arc.Sheet{Title: title}
	if demonstrations {
		s.Parts = append(s.Parts, arc.Labelled("train", d.task.Train))
	}
	ranks := d.result()
	for i, p := range d.task.Test {
		var part []arc.LabelledPair
		for k := range voting.Attempts {
			label := fmt.Sprintf("test[%d] attempt %d: no other answer", i, k+1)
			if len(a.Tests[i].Top) == 0 {
				label = fmt.Sprintf("test[%d] attempt %d: no answer", i, k+1)
			}
			var grid arc.Grid
			if t := a.Tests[i]; k < len(t.Top) {
				c := t.Top[k]
				grid = c.Grid
				label = fmt.Sprintf("test[%d] attempt %d: %d of %d votes", i, k+1, c.Votes, t.Votes)
				if ranks.Tests[i].Rank == k+1 {
					label += ", right"
				}
			}
			part = append(part, arc.LabelledPair{Label: label, Pair: arc.Pair{Input: p.Input, Output: grid}})
		}
		s.Parts = append(s.Parts, part)
	}
	return s
}

// result compares with the right answers where the task has them.
func (d *solved) result() voting.TaskResult {
	r := voting.TaskResult{ID: d.task.ID, Tests: make([]voting.TestResult, len(d.task.Test))}
	for i, p := range d.task.Test {
		t := &r.Tests[i]
		t.Labelled = p.Labelled()
		if d.answers == nil {
			continue
		}
		for k, c := range d.answers.Tests[i].Top {
			t.Answered = true
			if t.Rank == 0 && t.Labelled && c.Grid.Equal(p.Output) {
				t.Rank = k + 1
			}
		}
	}
	return r
}

// submission holds two attempts at every test input of every task, [[0]] where
// there is no answer.
func (v *solving) submission() voting.Submission {
	var sub voting.Submission
	for i, t := range v.tasks {
		a := voting.TaskAnswers{ID: t.ID}
		for j := range t.Test {
			var grids []arc.Grid
			if d := v.done[i]; d != nil && d.answers != nil {
				for _, c := range d.answers.Tests[j].Top {
					if len(grids) < voting.Attempts {
						grids = append(grids, c.Grid)
					}
				}
			}
			for len(grids) < voting.Attempts {
				grids = append(grids, arc.NewGrid(1, 1))
			}
			a.Tests = append(a.Tests, grids)
		}
		sub = append(sub, a)
	}
	return sub
}

// checkOut refuses, before any work, files that cannot be written.
func (o *solveOptions) checkOut() (err error) {
	if o.out == "" {
		return nil
	}
	if !strings.EqualFold(filepath.Ext(o.out), ".json") {
		return cli.Usagef("write submission %s: the name does not end in .json, expected one that does", o.out)
	}
	if o.replaces, err = files.Check(o.out, files.Submission, o.force, false); err != nil {
		return fmt.Errorf("write submission: %w", err)
	}
	o.pictureFile = strings.TrimSuffix(o.out, filepath.Ext(o.out)) + ".png"
	if o.replacesPicture, err = files.Check(o.pictureFile, files.PNG, o.force, false); err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}

// write writes the files and prints the end: what was written and, where right
// answers are known, the score; or the document of --json.
func (o *solveOptions) write(s *cli.Streams, v *solving) error {
	var notes []string
	var submission, picture string
	if o.out != "" && v.answered() > 0 {
		if err := writeSubmission(o.out, v.submission()); err != nil {
			return err
		}
		submission = o.out
		notes = append(notes, did(o.replaces)+" "+o.out)
		var sheets []*arc.Sheet
		for _, d := range v.done {
			if d != nil && d.answers != nil {
				sheets = append(sheets, d.sheet(true))
			}
		}
		err := files.Write(o.pictureFile, func(w io.Writer) error { return arc.WriteSheetsPNG(w, sheets...) })
		var large *arc.Error
		switch {
		case errors.As(err, &large):
			s.Infof("note: no %s: %v", o.pictureFile, large)
		case err != nil:
			return fmt.Errorf("write picture %s: %w", o.pictureFile, err)
		default:
			picture = o.pictureFile
			notes = append(notes, did(o.replacesPicture)+" "+o.pictureFile)
		}
	}
	if o.json {
		return v.writeJSON(s.Out, submission, picture)
	}
	for _, n := range notes {
		fmt.Fprintln(s.Out, n)
	}
	if n := len(v.tasks) - v.answered(); n > 0 {
		fmt.Fprintf(s.Out, "%s without an answer\n", tasksText(n))
	}
	score := voting.Ladder(v.results(), []int{1, voting.Attempts})
	if score[0].Outputs.Of == 0 {
		return nil
	}
	for _, x := range score {
		fmt.Fprintf(s.Out, "pass@%d  %.2f%% of tasks (%.0f/%d), %.2f%% of outputs (%.0f/%d)\n",
			x.K, x.AllTests.Percent(), x.AllTests.Solved, x.AllTests.Of, x.Outputs.Percent(), x.Outputs.Solved, x.Outputs.Of)
	}
	return nil
}

func did(replaces bool) string {
	if replaces {
		return "replaced"
	}
	return "wrote"
}

func (v *solving) results() []voting.TaskResult {
	var all []voting.TaskResult
	for i, t := range v.tasks {
		d := v.done[i]
		if d == nil {
			d = &solved{task: t}
		}
		all = append(all, d.result())
	}
	return all
}

// solveDoc is the document of hrm solve --json.
type solveDoc struct {
	Settings    solve.Settings `json:"settings"`
	Kernel      string         `json:"kernel"`
	Threads     int            `json:"threads"` // of each task
	Parallel    int            `json:"parallel"`
	Work        string         `json:"work"`
	Interrupted bool           `json:"interrupted"`
	Tasks       []solveTaskDoc `json:"tasks"`
	Score       []scoreReport  `json:"score"` // pass@1 and pass@2; percent is null where no right answer is known
	Submission  string         `json:"submission,omitempty"`
	Picture     string         `json:"picture,omitempty"`
}

type solveTaskDoc struct {
	ID      string              `json:"id"`
	Kept    bool                `json:"kept"` // answered by an earlier run
	Error   string              `json:"error,omitempty"`
	Answers *solve.Answers      `json:"answers"` // null without
	Result  []voting.TestResult `json:"result"`
}

// writeJSON prints the document, with the files that were written, "" for none.
func (v *solving) writeJSON(w io.Writer, submission, picture string) error {
	doc := solveDoc{
		Settings: v.settings, Kernel: v.team.choices[0].Backend.Name(), Threads: v.team.choices[0].Backend.Threads(),
		Parallel: len(v.team.choices), Work: v.work.dir, Interrupted: v.interrupted, Submission: submission, Picture: picture,
	}
	results := v.results()
	for i, t := range v.tasks {
		x := solveTaskDoc{ID: t.ID, Result: results[i].Tests}
		if d := v.done[i]; d != nil {
			x.Kept, x.Answers = d.kept, d.answers
			if d.err != nil {
				x.Error = d.err.Error()
			}
		}
		doc.Tasks = append(doc.Tasks, x)
	}
	for _, x := range voting.Ladder(results, []int{1, voting.Attempts}) {
		doc.Score = append(doc.Score, reportScore(x))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(doc)
}
