package main

import (
	"fmt"
	"os"
	"strings"

	"deeploop/internal/cli"
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
	raw, err := os.ReadFile(o.answers)
	if err != nil {
		return nil, &cli.UsageError{Err: fmt.Errorf("read answers: %w", err)}
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
	ladder := o.ladder
	if !o.ladderGiven {
		ladder = []int{1, 2}
	}
	r := newReport(o, tasks, results, ladder)
	r.Answers = o.answers
	r.Truth = o.truth
	r.warnings = append(r.warnings, warnings...)
	if missing := sub.NotMade(); len(missing) > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d attempts are missing or empty and count as wrong (Kaggle expects two everywhere): %s",
			len(missing), some(missing)))
	}
	return r, nil
}

// some joins the first of many names.
func some(names []string) string {
	const most = 20
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
