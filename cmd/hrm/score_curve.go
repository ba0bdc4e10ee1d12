package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/curves"
	"deeploop/internal/predictions"
	"deeploop/internal/runlog"
	"deeploop/voting"
)

// curveCopies are the numbers of augmented copies that a curve shows; the
// number there are is added.
var curveCopies = []int{0, 1, 3, 10, 30, 100, 300, 1000, 3000}

// curveReport is pass@K against what an evaluation costs.
type curveReport struct {
	File     string       `json:"file"`     // the picture
	Copies   []curvePoint `json:"copies"`   // by augmented copies that vote
	Segments []curvePoint `json:"segments"` // by segments of a row, all copies; what hrm eval --after left
}

type curvePoint struct {
	N     int           `json:"n"`
	Votes int           `json:"votes"`
	Pass  []scoreReport `json:"pass"`
}

// checkCurve refuses, before any work, a picture that could not be written.
func checkCurve(o scoreOptions) error {
	if o.answers != "" {
		return cli.Usagef("--curve needs predictions: --answers has one vote a test input")
	}
	return command.CheckPicture("curve", o.curve, o.force)
}

// drawCurve counts a curve and draws it.
func drawCurve(s *cli.Streams, progress *runlog.Progress, f *predictions.File, set *testSet, o scoreOptions) (*curveReport, error) {
	r, err := countCurve(s, progress, f, set, o)
	if err != nil {
		return nil, err
	}
	panels := []curves.Panel{r.panel("pass@K by copies of a test input that vote", r.Copies, 1)}
	if len(r.Segments) > 1 {
		panels = append(panels, r.panel("pass@K by segments", r.Segments, 0))
	}
	return r, curves.Save(o.curve, panels)
}

// countCurve counts the predictions for every number of copies, and those
// after fewer segments beside them.
func countCurve(s *cli.Streams, progress *runlog.Progress, f *predictions.File, set *testSet, o scoreOptions) (*curveReport, error) {
	r := &curveReport{File: o.curve, Copies: []curvePoint{}, Segments: []curvePoint{}}
	if _, err := newCounter(f, set); err != nil {
		return nil, err
	}
	most := copiesOf(f, set)
	var numbers []int
	for _, n := range curveCopies {
		if n < most {
			numbers = append(numbers, n)
		}
	}
	numbers = append(numbers, most)
	c := voting.NewCurve(numbers, set.copies, func() *voting.Counter {
		counter, _ := newCounter(f, set) // checked above
		return counter
	})
	if err := eachRows(progress, f, set, c.Add); err != nil {
		return nil, err
	}
	for _, p := range c.Points() {
		r.Copies = append(r.Copies, newCurvePoint(p.Copies, p.Votes, p.Results, o))
	}
	return r, r.addSegments(s, progress, f, set, o)
}

// copiesOf is the largest number of copies beside the original that any task
// has among the rows.
func copiesOf(f *predictions.File, set *testSet) int {
	seen, met, most := map[int32]bool{}, map[int]int{}, 0
	for _, id := range f.Identifiers {
		if task := set.copies.Task(id); task >= 0 && !seen[id] {
			seen[id] = true
			most = max(most, met[task])
			met[task]++
		}
	}
	return most
}

func newCurvePoint(n, votes int, results []voting.TaskResult, o scoreOptions) curvePoint {
	p := curvePoint{N: n, Votes: votes}
	ladder := append(slices.Clone(o.ladder), o.votes)
	slices.Sort(ladder)
	for _, score := range voting.Ladder(results, slices.Compact(ladder)) {
		p.Pass = append(p.Pass, reportScore(score))
	}
	return p
}

var afterName = regexp.MustCompile(`-after-([0-9]+)\.`)

// addSegments scores the files that hrm eval --after left beside f, and f
// itself. What another evaluation left there is passed over.
func (r *curveReport) addSegments(s *cli.Streams, progress *runlog.Progress, f *predictions.File, set *testSet, o scoreOptions) error {
	entries, err := os.ReadDir(filepath.Dir(f.Path))
	if err != nil {
		return fmt.Errorf("draw curve: %w", err)
	}
	for _, e := range entries {
		m := afterName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || filepath.Base(predictions.AfterName(f.Path, n)) != e.Name() {
			continue
		}
		after, err := predictions.Open(filepath.Join(filepath.Dir(f.Path), e.Name()))
		if err != nil {
			return err
		}
		same := f.Meta
		same.HaltSteps = n
		if after.Meta != same || after.Rows != f.Rows {
			s.Warnf("%s is of another evaluation than %s; left out", after.Path, f.Path)
			continue
		}
		if err := r.addSegment(progress, after, set, n, o); err != nil {
			return err
		}
	}
	if f.Meta.HaltSteps > 0 {
		if err := r.addSegment(progress, f, set, f.Meta.HaltSteps, o); err != nil {
			return err
		}
	}
	slices.SortFunc(r.Segments, func(a, b curvePoint) int { return a.N - b.N })
	return nil
}

func (r *curveReport) addSegment(progress *runlog.Progress, f *predictions.File, set *testSet, n int, o scoreOptions) error {
	v, err := count(progress, f, set)
	if err == nil {
		r.Segments = append(r.Segments, newCurvePoint(n, v.Rows, v.Results(), o))
	}
	return err
}

// panel draws points; beside is how many more than N are on the axis.
func (r *curveReport) panel(title string, points []curvePoint, beside int) curves.Panel {
	p := curves.Panel{Title: title + ", tasks solved whole, %", X: "segments"}
	if beside > 0 {
		p.X, p.LogX = "copies that vote, the original included", true
	}
	for k := range points[0].Pass {
		line := curves.Series{Name: fmt.Sprintf("pass@%d", points[0].Pass[k].K), Points: true}
		for _, point := range points {
			if percent := point.Pass[k].AllTests.Percent; percent != nil {
				line.Steps, line.Value = append(line.Steps, point.N+beside), append(line.Value, *percent)
			}
		}
		if len(line.Steps) > 0 {
			p.Series = append(p.Series, line)
		}
	}
	return p
}

// write prints the numbers that the picture shows.
func (r *curveReport) write(b *strings.Builder) {
	table := func(what string, points []curvePoint) {
		w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
		fmt.Fprintf(w, "%s\tvotes", what)
		for _, pass := range points[0].Pass {
			fmt.Fprintf(w, "\tpass@%d", pass.K)
		}
		fmt.Fprintln(w)
		for _, p := range points {
			fmt.Fprintf(w, "%d\t%d", p.N, p.Votes)
			for _, pass := range p.Pass {
				fmt.Fprintf(w, "\t%s", pass.AllTests.text("%.0f/%d"))
			}
			fmt.Fprintln(w)
		}
		w.Flush()
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	table("augmented copies", r.Copies)
	if len(r.Segments) > 1 {
		table("segments", r.Segments)
	}
	fmt.Fprintf(b, "picture: %s\n", r.File)
}
