package main

import (
	"fmt"
	"slices"
	"strings"

	"deeploop/arc"
	"deeploop/internal/cli"
	"deeploop/internal/files"
	"deeploop/internal/wording"
	"deeploop/voting"
)

// scoreAnswers scores anyone's submission against a ground truth.
func scoreAnswers(o scoreOptions) (*report, error) {
	switch {
	case o.truth == "":
		return nil, cli.Usagef("--answers needs --truth DIR|FILE, the tasks with their right answers")
	case o.predictions != "" || o.data != "" || o.submission != "":
		return nil, cli.Usagef("--answers scores a submission as it is; it cannot be combined with --predictions, --data or --submission")
	}
	if o.votes > voting.Attempts {
		return nil, cli.Usagef("--votes is %d, but a submission has %d attempts at each test input, so pass@%d is all there is; expected 1 or 2",
			o.votes, voting.Attempts, voting.Attempts)
	}
	raw, err := files.Read(o.answers, arc.MaxCombinedFile)
	if err != nil {
		return nil, fmt.Errorf("read answers: %w", err)
	}
	sub, err := voting.ParseSubmission(raw)
	if err != nil {
		return nil, fmt.Errorf("read answers %s:\n%w", o.answers, err)
	}
	tasks, warnings, err := loadTruth(o.truth)
	if err != nil {
		return nil, err
	}
	results, err := sub.Check(tasks)
	if err != nil {
		return nil, fmt.Errorf("score answers %s against %s:\n%w", o.answers, o.truth, err)
	}
	if voting.ScoreAt(results, 1).Outputs.Of == 0 {
		return nil, cli.Usagef("score answers: %s has tasks but no right answers; give the file with the solutions", o.truth)
	}
	ladder, above := []int{1, 2}, []int(nil)
	if o.ladderGiven {
		at, _ := slices.BinarySearch(o.ladder, voting.Attempts+1)
		if ladder, above = o.ladder[:at], o.ladder[at:]; len(ladder) == 0 {
			ladder = []int{voting.Attempts}
		}
	}
	r := newReport(o, tasks, results, ladder)
	r.Answers = o.answers
	r.Truth = o.truth
	r.warnings = append(r.warnings, warnings...)
	if len(above) > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("--ladder: left out %s: a submission has %d attempts at each test input",
			strings.Trim(fmt.Sprint(above), "[]"), voting.Attempts))
	}
	if more := sub.Beyond(); len(more) > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d attempts after the second do not count: %s", len(more), some(more)))
	}
	if missing := sub.NotMade(); len(missing) > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d attempts are missing or empty and count as wrong (Kaggle expects two everywhere): %s",
			len(missing), some(missing)))
	}
	return r, nil
}

// some names the first of many.
func some(names []string) string { return wording.List(names, 20) }
