package command

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"deeploop/internal/cli"
	"deeploop/internal/curves"
	"deeploop/internal/files"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
)

const (
	thenPrefix = "then."
	sweepFile  = "sweep.json" // in a finished run
)

// sweepResult is what a finished run leaves in its folder.
type sweepResult struct {
	Args    []string                 `json:"args"`
	Then    []string                 `json:"then,omitempty"`
	Seconds float64                  `json:"seconds"` // of the last session
	Values  map[string]runlog.Number `json:"values"`
}

// readResult returns the result of a run that was finished with the same
// arguments and measured by the same commands, nil where there is none.
func readResult(r sweepRun, metrics, then []string) *sweepResult {
	raw, err := os.ReadFile(filepath.Join(r.dir, sweepFile))
	if err != nil {
		return nil
	}
	x := &sweepResult{}
	if json.Unmarshal(raw, x) != nil || !slices.Equal(x.Args, r.args) {
		return nil
	}
	values := map[string]runlog.Number{}
	for _, m := range metrics {
		v, found := x.Values[m]
		if !found || strings.HasPrefix(m, thenPrefix) && !slices.Equal(x.Then, then) {
			return nil
		}
		values[m] = v
	}
	x.Values = values
	return x
}

// measure takes the metrics of a finished run: from its last evaluation, and
// from the document that the commands after it printed.
func (s *Sweep) measure(r sweepRun, document []byte) (*sweepResult, error) {
	lines, err := runlog.Read(filepath.Join(r.dir, train.MetricsFile))
	if err != nil {
		return nil, err
	}
	last := runlog.Metrics{}
	for _, l := range lines {
		if l.Event == runlog.Eval {
			last = l.Values
		}
	}
	result := &sweepResult{Args: r.args, Then: s.Then, Values: map[string]runlog.Number{}}
	for _, m := range s.Metrics {
		v, found := last[m]
		if path, inside := strings.CutPrefix(m, thenPrefix); inside {
			var doc any
			if err := json.Unmarshal(document, &doc); err != nil {
				return nil, fmt.Errorf("%s: the last command below then prints no JSON document: %w", r.dir, err)
			}
			if v, found = at(doc, path); !found {
				return nil, cli.Usagef("%s: there is no number at %s in what the last command below then prints (kept in %s.log)", r.dir, path, r.dir)
			}
		}
		if !found {
			return nil, cli.Usagef("%s: there is no metric %s; the last evaluation has %s", r.dir, m, strings.Join(namesOf(last), ", "))
		}
		result.Values[m] = runlog.Number(v)
	}
	return result, nil
}

func namesOf(m runlog.Metrics) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// at finds a number in a JSON document by keys and places with dots between.
func at(doc any, path string) (float64, bool) {
	for part := range strings.SplitSeq(path, ".") {
		switch x := doc.(type) {
		case map[string]any:
			doc = x[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(x) {
				return 0, false
			}
			doc = x[i]
		default:
			return 0, false
		}
	}
	var v runlog.Number // or the name of one that is not finite
	raw, err := json.Marshal(doc)
	if err != nil || doc == nil || v.UnmarshalJSON(raw) != nil {
		return 0, false
	}
	return float64(v), true
}

func (x *sweepResult) save(r sweepRun) error {
	raw, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return fmt.Errorf("store the result of %s: %w", r.dir, err)
	}
	return files.WriteFile(filepath.Join(r.dir, sweepFile), append(raw, '\n'))
}

// sweepRow is a setting in the table.
type sweepRow struct {
	Setting string                `json:"setting"`
	Seeds   []int                 `json:"seeds"` // that are finished
	Of      int                   `json:"of"`    // seeds asked for
	Metrics map[string]sweepValue `json:"metrics"`
}

// sweepValue is a metric over the finished seeds. SD is that of a sample
// (n-1), null of less than two.
type sweepValue struct {
	Values []runlog.Number `json:"values"`
	Mean   *runlog.Number  `json:"mean"`
	SD     *runlog.Number  `json:"sd"`
}

// rows are the table of what is finished.
func (s *Sweep) rows(runs []sweepRun, results []*sweepResult) (rows []sweepRow) {
	for _, x := range s.Settings {
		row := sweepRow{Setting: x.Name, Of: len(s.seedsOf(x)), Seeds: []int{}, Metrics: map[string]sweepValue{}}
		for _, m := range s.Metrics {
			var v sweepValue
			for i, r := range runs {
				if r.setting == x.Name && results[i] != nil {
					v.Values = append(v.Values, results[i].Values[m])
				}
			}
			v.Mean, v.SD = meanSD(v.Values)
			row.Metrics[m] = v
		}
		for i, r := range runs {
			if r.setting == x.Name && results[i] != nil {
				row.Seeds = append(row.Seeds, r.seed)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func meanSD(values []runlog.Number) (mean, sd *runlog.Number) {
	n := float64(len(values))
	if n == 0 {
		return nil, nil
	}
	var sum, squares float64
	for _, v := range values {
		sum += float64(v)
	}
	m := sum / n
	for _, v := range values {
		squares += (float64(v) - m) * (float64(v) - m)
	}
	mean = new(runlog.Number(m))
	if n > 1 {
		sd = new(runlog.Number(math.Sqrt(squares / (n - 1))))
	}
	return mean, sd
}

// writeRows prints the table in Markdown.
func (s *Sweep) writeRows(w io.Writer, rows []sweepRow) error {
	fmt.Fprintf(w, "| %s | seeds |", s.Name)
	for _, m := range s.Metrics {
		fmt.Fprintf(w, " %s |", m)
	}
	fmt.Fprintf(w, "\n|%s\n", strings.Repeat(" --- |", 2+len(s.Metrics)))
	for _, row := range rows {
		fmt.Fprintf(w, "| %s | %d of %d |", row.Setting, len(row.Seeds), row.Of)
		for _, m := range s.Metrics {
			v := row.Metrics[m]
			switch {
			case v.Mean == nil:
				fmt.Fprint(w, " not run yet |")
			case v.SD == nil:
				fmt.Fprintf(w, " %.4g |", float64(*v.Mean))
			default:
				fmt.Fprintf(w, " %.4g ± %.2g |", float64(*v.Mean), float64(*v.SD))
			}
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// diagrams are the table as pictures, one for each metric, without settings of
// which nothing is finished.
func (s *Sweep) diagrams(rows []sweepRow) []curves.Groups {
	var all []curves.Groups
	for _, m := range s.Metrics {
		d := curves.Groups{Title: s.Name + ": " + m}
		for _, row := range rows {
			v := row.Metrics[m]
			if v.Mean == nil {
				continue
			}
			g := curves.Group{Name: row.Setting, Mean: (*float64)(v.Mean), SD: (*float64)(v.SD)}
			for _, x := range v.Values {
				g.Values = append(g.Values, float64(x))
			}
			d.Groups = append(d.Groups, g)
		}
		if len(d.Groups) > 0 {
			all = append(all, d)
		}
	}
	return all
}
