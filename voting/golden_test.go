package voting_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/internal/goldentest"
	"deeploop/internal/predictions"
	"deeploop/internal/safetensors"
	"deeploop/voting"
)

// recorded is the reference evaluator's output.
type recorded struct {
	Tasks       int                 `json:"tasks"`
	K           []int               `json:"K"`
	Solved      map[string]int      `json:"solved"`
	Percent     map[string]string   `json:"percent"`
	SolvedTasks map[string][]string `json:"solved_tasks"`
	Results     []struct {
		Task        string `json:"task"`
		TestIndex   int    `json:"test_index"`
		InputSHA256 string `json:"test_input_sha256"`
		LabelSHA256 string `json:"label_sha256"`
		LabelShape  [2]int `json:"label_shape"`
		RankOfLabel *int   `json:"rank_of_label"`
		Ranked      []struct {
			SHA256  string   `json:"sha256"`
			Shape   [2]int   `json:"shape"`
			Count   int      `json:"count"`
			MeanQ   float64  `json:"mean_q"`
			Correct bool     `json:"correct"`
			Grid    []string `json:"grid"`
		} `json:"ranked"`
	} `json:"results"`
}

// predicted is a recorded predictions file in memory.
type predicted struct {
	names                 []string
	side                  int
	ids                   []int32
	q                     []float32
	preds, inputs, labels []uint8
}

func (p *predicted) rows() int { return len(p.ids) }

func readPredicted(t testing.TB, path, identifiers string) *predicted {
	t.Helper()
	f, err := predictions.Open(path)
	require.NoError(t, err)
	p := &predicted{ids: f.Identifiers, q: f.QHalt}
	readJSON(t, identifiers, &p.names)
	for p.side*p.side < f.SeqLen {
		p.side++
	}
	read := func(open func() (*predictions.Tokens, error)) []uint8 {
		s, err := open()
		require.NoError(t, err)
		defer s.Close()
		tokens := make([]uint8, f.Rows*f.SeqLen)
		_, err = s.Read(tokens)
		require.NoError(t, err)
		return tokens
	}
	p.preds, p.inputs, p.labels = read(f.Preds), read(f.Inputs), read(f.Labels)
	return p
}

func readJSON(t testing.TB, path string, dst any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, dst))
}

// count counts the rows in batches of n with w goroutines, the way the
// reference does: ground truth and test inputs are taken from the rows.
func (p *predicted) count(t testing.TB, n, w int) *voting.Votes {
	t.Helper()
	names := make([]voting.Name, len(p.names))
	for i, n := range p.names {
		task, _ := augment.ParseName(n)
		names[i] = voting.Name{Task: task, Augmented: task != n}
	}
	g := voting.NewGatherer(names, p.side)
	s := p.side * p.side
	batches := func(visit func(lo, hi int)) {
		for lo := 0; lo < p.rows(); lo += n {
			visit(lo, min(lo+n, p.rows()))
		}
	}
	batches(func(lo, hi int) {
		require.NoError(t, g.Add(p.ids[lo:hi], p.inputs[lo*s:hi*s], p.labels[lo*s:hi*s]))
	})
	tasks, err := g.Tasks()
	require.NoError(t, err)
	c := voting.NewCounter(tasks, newNamed(p.names, tasks), p.side, w)
	batches(func(lo, hi int) {
		require.NoError(t, c.Add(voting.Rows{Identifiers: p.ids[lo:hi], QHalt: p.q[lo:hi], Preds: p.preds[lo*s : hi*s], Inputs: p.inputs[lo*s : hi*s]}))
	})
	return c.Votes()
}

// named undoes the augmentations that names describe.
type named struct {
	tasks []int
	augs  []augment.Augmentation
}

func newNamed(names []string, tasks []arc.Task) *named {
	place := map[string]int{}
	for i, t := range tasks {
		place[t.ID] = i
	}
	n := &named{}
	for _, name := range names {
		task, a := augment.ParseName(name)
		at, ok := place[task]
		if !ok {
			at = -1
		}
		n.tasks, n.augs = append(n.tasks, at), append(n.augs, a)
	}
	return n
}

func (n *named) Task(id int32) int { return n.tasks[id] }

func (n *named) Undo(id int32, g arc.Grid) arc.Grid { return n.augs[id].Undo(g) }

func sha(g arc.Grid) string {
	h := sha256.Sum256(append([]byte{byte(g.Rows), byte(g.Cols)}, g.Cells...))
	return hex.EncodeToString(h[:])
}

// matches compares votes with the reference's: counts, order and hashes
// exactly, mean halt probabilities to 1e-6, the ladder as printed.
func matches(t *testing.T, v *voting.Votes, want *recorded) {
	t.Helper()
	var tests []voting.TestVotes
	var tasks []string
	var index []int
	for _, task := range v.Tasks {
		for j, test := range task.Tests {
			tests, tasks, index = append(tests, test), append(tasks, task.ID), append(index, j)
		}
	}
	require.Len(t, tests, len(want.Results))
	for i, w := range want.Results {
		at := fmt.Sprintf("%s test %d", w.Task, w.TestIndex)
		got := tests[i]
		require.Equal(t, w.Task, tasks[i])
		require.Equal(t, w.TestIndex, index[i], at)
		require.Equal(t, w.InputSHA256, sha(got.Pair.Input), at)
		require.Equal(t, w.LabelSHA256, sha(got.Pair.Output), at)
		require.Equal(t, w.LabelShape, [2]int{got.Pair.Output.Rows, got.Pair.Output.Cols}, at)
		if w.RankOfLabel == nil {
			require.Zero(t, got.Rank, at)
		} else {
			require.Equal(t, *w.RankOfLabel, got.Rank, at)
		}
		require.Len(t, got.Ranked, len(w.Ranked), at)
		for k, c := range w.Ranked {
			at := fmt.Sprintf("%s rank %d", at, k+1)
			g := got.Ranked[k].Grid()
			require.Equal(t, c.SHA256, sha(g), at)
			require.Equal(t, c.Shape, [2]int{g.Rows, g.Cols}, at)
			require.Equal(t, c.Count, got.Ranked[k].Count, at)
			require.InDelta(t, c.MeanQ, got.Ranked[k].MeanQ, 1e-6, at)
			require.Equal(t, c.Correct, g.Equal(got.Pair.Output), at)
			if c.Grid != nil {
				require.Equal(t, c.Grid, digits(g), at)
			}
		}
	}
	results := v.Results()
	for _, s := range voting.Ladder(results, want.K) {
		k := strconv.Itoa(s.K)
		require.Equal(t, want.Tasks, s.AllTests.Of)
		require.Equal(t, float64(want.Solved[k]), s.AllTests.Solved, k)
		require.Equal(t, want.Percent[k], fmt.Sprintf("%.2f%%", s.AllTests.Percent()), k)
		solved := []string{}
		for _, r := range results {
			if voting.ScoreAt([]voting.TaskResult{r}, s.K).AllTests.Solved == 1 {
				solved = append(solved, r.ID)
			}
		}
		slices.Sort(solved)
		require.Equal(t, want.SolvedTasks[k], solved, k)
	}
}

func digits(g arc.Grid) []string {
	rows := []string{}
	for r := range g.Rows {
		var b strings.Builder
		for c := range g.Cols {
			b.WriteByte('0' + g.At(r, c))
		}
		rows = append(rows, b.String())
	}
	return rows
}

// replay counts a recorded set in several ways. A set is NAME_predictionsX.*,
// NAME_identifiersX.json, NAME_expectedX.json.
func replay(t *testing.T, path string) {
	p := readPredicted(t, path, goldentest.Partner(path, "_predictions", "_identifiers", ".json"))
	var want recorded
	readJSON(t, goldentest.Partner(path, "_predictions", "_expected", ".json"), &want)
	for _, c := range [][2]int{{p.rows(), 1}, {1, 1}, {7, 2}, {100, 3}} {
		v := p.count(t, c[0], c[1])
		matches(t, v, &want)
		require.Equal(t, p.rows(), v.Rows+v.PadRows)
	}
}

// The reference's evaluator, on every recorded set of predictions.
func TestGoldenVotes(t *testing.T) {
	for _, path := range goldentest.Files(t, "*_predictions*.safetensors") {
		t.Run(filepath.Base(path), func(t *testing.T) { replay(t, path) })
	}
}

// The same on this project's own sample tasks; see testdata/README.md.
func TestRecordedVotes(t *testing.T) {
	for _, path := range goldentest.Glob(t, "testdata", "*_predictions.safetensors.zst") {
		t.Run(filepath.Base(path), func(t *testing.T) { replay(t, path) })
	}
}

func TestGoldenSigmoid(t *testing.T) {
	for _, path := range goldentest.Files(t, "*_predictions*.safetensors") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, err := safetensors.Open(path)
			require.NoError(t, err)
			defer f.Close()
			q, err := f.Float32s("q_halt_logits")
			require.NoError(t, err)
			want, err := f.Float32s("q_halt_sigmoid")
			require.NoError(t, err)
			for i := range want {
				require.InDelta(t, want[i], voting.Sigmoid(q[i]), 1.2e-7, "row %d", i) // 2 units in the last place
			}
		})
	}
}
