package voting_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/voting"
)

func TestCrop(t *testing.T) {
	for _, c := range []struct{ name, tokens, want string }{
		{"marked", "231/451/110", "01/23"},
		{"whole canvas", "222/333/444", "000/111/222"},
		{"empty", "122/222/222", ""},
		{"pad first", "022/222/222", ""},
		{"one row", "234/110/000", "012"},
		{"width shrinks", "234/231/211", "01/01"}, // 3, 4, 3 cells
		{"first of equal areas wins", "2222/2211/1111/0000", "0000"},
		{"rows behind an empty one are out", "23/01/23", "01"},
		{"garbage outside", "2319/4518/1177/6666", "01/23"},
		{"hole", "2222/2122/2222/2222", "0000"},
		{"above the colours", "2<2/222/222", "0/0/0"}, // '<' is token 12
		{"colour nine", ";1/11", "9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tokens []uint8
			n := 0
			for _, row := range bytes.Split([]byte(c.tokens), []byte("/")) {
				n = max(n, len(row))
				for _, b := range row {
					tokens = append(tokens, b-'0')
				}
			}
			for len(tokens) < n*n {
				tokens = append(tokens, 0)
			}
			require.Equal(t, grid(c.want).Clone(), voting.Crop(tokens[:n*n], n).Clone())
		})
	}
	require.Panics(t, func() { voting.Crop(make([]uint8, 8), 3) })
}

// A grid comes back from its canvas, whatever the canvas side.
func TestCropUndoesCanvas(t *testing.T) {
	for _, side := range []int{1, 10, 30} {
		for r := 1; r <= side; r++ {
			for c := 1; c <= side; c++ {
				g := arc.NewGrid(r, c)
				for i := range g.Cells {
					g.Cells[i] = uint8((i*7 + r) % 10)
				}
				require.True(t, g.Equal(voting.Crop(canvas(g, side), side)), "%dx%d in %d", r, c, side)
			}
		}
	}
}

// T1: a submission has one entry per test input, in order.
func TestT1MissingFirstTest(t *testing.T) {
	tasks := []arc.Task{task("a", "1>11", "2>22")}
	v := tally(t, tasks, vote{0, 1, "22", 1})
	var out bytes.Buffer
	require.NoError(t, v.Submission().Write(&out))
	require.JSONEq(t, `{"a": [{"attempt_1": [[0]], "attempt_2": [[0]]}, {"attempt_1": [[2, 2]], "attempt_2": [[0]]}]}`, out.String())

	c := voting.Cover(v.Results())
	require.Equal(t, []voting.TestInput{{Task: "a", Index: 0}}, c.MissingInputs)
	require.Equal(t, 1, c.Answered)
	s := voting.ScoreAt(v.Results(), 2)
	require.Equal(t, voting.Ratio{Solved: 0, Of: 1}, s.AllTests)
	require.Equal(t, voting.Ratio{Solved: .5, Of: 1}, s.TaskMean)
	require.Equal(t, voting.Ratio{Solved: 1, Of: 2}, s.Outputs)
}

// T2: what is left out counts as wrong, what does not belong is an error.
func TestT2MissingTask(t *testing.T) {
	truth := []arc.Task{task("A", "1>11"), task("B", "2>22")}
	s, err := voting.ParseSubmission([]byte(`{"A": [{"attempt_1": [[1, 1]], "attempt_2": [[0]]}]}`))
	require.NoError(t, err)
	results, err := s.Check(truth)
	require.NoError(t, err)
	score := voting.ScoreAt(results, 2)
	require.Equal(t, 50.0, score.AllTests.Percent())
	require.Equal(t, 50.0, score.TaskMean.Percent())
	require.Equal(t, 50.0, score.Outputs.Percent())
	require.Equal(t, []string{"B"}, voting.Cover(results).MissingTasks)

	// Twice the right answer is right at the first attempt.
	s, err = voting.ParseSubmission([]byte(`{"A": [{"attempt_1": [[1, 1]], "attempt_2": [[1, 1]]}]}`))
	require.NoError(t, err)
	results, err = s.Check(truth)
	require.NoError(t, err)
	require.Equal(t, 1.0, voting.ScoreAt(results, 1).Outputs.Solved)

	// The same for predictions.
	v := tally(t, truth, vote{0, 0, "11", 0})
	require.Equal(t, 50.0, voting.ScoreAt(v.Results(), 2).AllTests.Percent())
	require.Equal(t, []string{"B"}, voting.Cover(v.Results()).MissingTasks)

	s, err = voting.ParseSubmission([]byte(`{"C": [], "A": [{}, {}], "D": [{}]}`))
	require.NoError(t, err)
	_, err = s.Check(truth)
	require.ErrorContains(t, err, `task "C" is not in the ground truth`)
	require.ErrorContains(t, err, `task "A" has 2 entries, expected 1`)
	require.ErrorContains(t, err, `task "D" is not in the ground truth`)
	require.True(t, err.(*voting.Error).BadInput())
}

// T3: three conventions, three numbers.
func TestT3ThreeConventions(t *testing.T) {
	truth := []arc.Task{task("A", "1>11", "2>22"), task("B", "3>33")}
	check := func(results []voting.TaskResult) {
		s := voting.ScoreAt(results, 2)
		require.InDelta(t, 50.0, s.AllTests.Percent(), 1e-9)
		require.InDelta(t, 75.0, s.TaskMean.Percent(), 1e-9)
		require.InDelta(t, 200.0/3, s.Outputs.Percent(), 1e-9)
		require.Equal(t, [3]int{2, 2, 3}, [3]int{s.AllTests.Of, s.TaskMean.Of, s.Outputs.Of})
	}
	v := tally(t, truth, vote{0, 0, "11", 0}, vote{0, 1, "0", 0}, vote{1, 0, "33", 0})
	check(v.Results())

	var out bytes.Buffer
	require.NoError(t, v.Submission().Write(&out))
	s, err := voting.ParseSubmission(out.Bytes())
	require.NoError(t, err)
	results, err := s.Check(truth)
	require.NoError(t, err)
	check(results)
}

// T20: exact ties keep the order of the rows, and a second attempt is another
// answer.
func TestT20TieOrder(t *testing.T) {
	tasks := []arc.Task{task("a", "1>22")}
	var votes []vote
	for range 5 {
		votes = append(votes, vote{0, 0, "33", .25}, vote{0, 0, "22", .25})
	}
	v := tally(t, tasks, votes...)
	require.Equal(t, []string{"33", "22"}, ranking(v.Tasks[0].Tests[0]))
	require.Equal(t, 2, v.Tasks[0].Tests[0].Rank)
	attempts := v.Submission()[0].Tests[0]
	require.Equal(t, []arc.Grid{grid("33"), grid("22")}, attempts)

	votes[0].q = .24 // now the other one's mean is higher
	v = tally(t, tasks, votes...)
	require.Equal(t, []string{"22", "33"}, ranking(v.Tasks[0].Tests[0]))
	votes = append(votes, vote{0, 0, "33", -9}) // and now the count decides
	v = tally(t, tasks, votes...)
	require.Equal(t, []string{"33", "22"}, ranking(v.Tasks[0].Tests[0]))
}

// A NaN halt logit cannot push an answer up, and the order stays total.
func TestNaNHalt(t *testing.T) {
	nan := float32(math.NaN())
	v := tally(t, []arc.Task{task("a", "1>2")}, vote{0, 0, "1", nan}, vote{0, 0, "2", -50}, vote{0, 0, "3", nan})
	require.Equal(t, []string{"2", "1", "3"}, ranking(v.Tasks[0].Tests[0]))
	require.Equal(t, 2, v.NaNHalts)
}

// A 0x0 answer keeps its rank in the ladder and never reaches a submission.
func TestEmptyAnswer(t *testing.T) {
	tasks := []arc.Task{task("a", "1>22"), task("b", "1>22")}
	v := tally(t, tasks,
		vote{0, 0, "", 0}, vote{0, 0, "", 0}, vote{0, 0, "", 0}, vote{0, 0, "33", 0}, vote{0, 0, "33", 0}, vote{0, 0, "22", 0},
		vote{1, 0, "", 0})
	require.Equal(t, []string{"", "33", "22"}, ranking(v.Tasks[0].Tests[0]))
	require.Equal(t, 3, v.Tasks[0].Tests[0].Rank)
	require.Zero(t, voting.ScoreAt(v.Results(), 2).Outputs.Solved)
	s := v.Submission()
	require.Equal(t, []arc.Grid{grid("33"), grid("22")}, s[0].Tests[0])
	require.Equal(t, []arc.Grid{grid("0"), grid("0")}, s[1].Tests[0])
	require.Equal(t, 2, voting.Cover(v.Results()).Answered)
}

// T11: nothing assumes a number of augmentations: votes of one test input may
// be 9, of another 1 or none.
func TestT11UnequalVotes(t *testing.T) {
	tasks := []arc.Task{task("a", "1>2"), task("b", "1>2"), task("c", "1>2")}
	votes := []vote{{1, 0, "2", 0}}
	for range 9 {
		votes = append(votes, vote{0, 0, "2", 0})
	}
	v := tally(t, tasks, votes...)
	require.Equal(t, []int{9, 1, 0}, []int{v.Tasks[0].Tests[0].Votes, v.Tasks[1].Tests[0].Votes, v.Tasks[2].Tests[0].Votes})
	require.Equal(t, voting.Ratio{Solved: 2, Of: 3}, voting.ScoreAt(v.Results(), 1).AllTests)
}

// Unlabelled test inputs are in no denominator but in the submission.
func TestUnlabelled(t *testing.T) {
	tasks := []arc.Task{task("a", "1>2", "3>"), task("b", "1>")}
	v := tally(t, tasks, vote{0, 0, "2", 0}, vote{0, 1, "4", 0}, vote{1, 0, "5", 0})
	s := voting.ScoreAt(v.Results(), 1)
	require.Equal(t, voting.Score{K: 1, AllTests: voting.Ratio{Solved: 1, Of: 1}, TaskMean: voting.Ratio{Solved: 1, Of: 1}, Outputs: voting.Ratio{Solved: 1, Of: 1}}, s)
	require.Equal(t, 2, voting.Cover(v.Results()).Unlabelled)
	require.Len(t, v.Submission()[0].Tests, 2)
	require.Equal(t, grid("5"), v.Submission()[1].Tests[0][0])

	// An empty prediction is not the right answer of an unlabelled input.
	v = tally(t, tasks, vote{1, 0, "", 0})
	require.Zero(t, v.Tasks[1].Tests[0].Rank)
	require.Zero(t, voting.Ratio{}.Percent())
}

// Equal test inputs of one task are told apart by the order of the rows.
func TestEqualTestInputs(t *testing.T) {
	tasks := []arc.Task{task("a", "7>2", "7>3", "7>4")}
	v := tally(t, tasks, vote{0, 0, "2", 0}, vote{0, 1, "3", 0}, vote{0, 2, "4", 0}, vote{0, 0, "2", 0}, vote{0, 1, "5", 0}, vote{0, 2, "4", 0})
	require.Equal(t, [][]string{{"2"}, {"3", "5"}, {"4"}},
		[][]string{ranking(v.Tasks[0].Tests[0]), ranking(v.Tasks[0].Tests[1]), ranking(v.Tasks[0].Tests[2])})
}

func TestForeignRows(t *testing.T) {
	tasks := []arc.Task{task("a", "1>2")}
	for want, b := range map[string]voting.Rows{
		"row 1: identifier 2 belongs to no task":                rows(append(tasks, tasks[0]), []vote{{0, 0, "1", 0}, {1, 0, "1", 0}}, true),
		"row 0: its input, a 1x1 grid":                          rows([]arc.Task{task("a", "5>5")}, []vote{{0, 0, "1", 0}}, false),
		"row 0: test index 1 of task a, which has 1 test input": rows(tasks, []vote{{0, 1, "1", 0}}, true),
	} {
		err := voting.NewCounter(tasks, plain(1), side, 1).Add(b)
		require.ErrorContains(t, err, want)
		require.True(t, err.(*voting.Error).BadInput())
	}
}

func TestPadRows(t *testing.T) {
	tasks := []arc.Task{task("a", "1>2")}
	b := rows(tasks, []vote{{0, 0, "2", 0}, {0, 0, "3", 0}}, false)
	b.Identifiers[0] = 0
	c := voting.NewCounter(tasks, plain(1), side, 1)
	require.NoError(t, c.Add(b))
	v := c.Votes()
	require.Equal(t, [2]int{1, 1}, [2]int{v.Rows, v.PadRows})
	require.Equal(t, []string{"3"}, ranking(v.Tasks[0].Tests[0]))
}

func TestGathererRefusesDoubles(t *testing.T) {
	names := []voting.Name{{Task: "<blank>"}, {Task: "a"}, {Task: "a", Augmented: true}}
	in, out := canvas(grid("1"), side), canvas(grid("2"), side)
	g := voting.NewGatherer(names, side)
	require.NoError(t, g.Add([]int32{0, 2}, append(in[:len(in):len(in)], in...), append(out[:len(out):len(out)], out...)))
	_, err := g.Tasks()
	require.ErrorContains(t, err, "no row belongs to an unaugmented task")
	require.NoError(t, g.Add([]int32{1}, in, out))
	tasks, err := g.Tasks()
	require.NoError(t, err)
	require.Equal(t, []arc.Task{task("a", "1>2")}, tasks)
	require.ErrorContains(t, g.Add([]int32{1}, in, out), "row 3: task a has this test input twice")
	require.ErrorContains(t, voting.NewGatherer(names, side).Add([]int32{3}, in, out), "identifier 3, expected 0 to 2")
}

// T21: one changed cell changes the hash of the ground truth and is named.
func TestT21TruthVersions(t *testing.T) {
	a := []arc.Task{task("a", "1>11", "2>22"), task("b", "3>33")}
	b := []arc.Task{task("b", "3>33"), task("a", "1>11", "2>22")}
	require.Equal(t, voting.HashTruth(a), voting.HashTruth(b), "order of tasks does not matter")
	b[1].Test[1].Output.Set(0, 1, 3)
	require.NotEqual(t, voting.HashTruth(a), voting.HashTruth(b))
	b = append(b, task("c", "1>1"))
	onlyA, onlyB, changed := voting.Compare(a, b)
	require.Empty(t, onlyA)
	require.Equal(t, []string{"c"}, onlyB)
	require.Equal(t, []voting.TestInput{{Task: "a", Index: 1}}, changed)
	_, _, changed = voting.Compare(a, []arc.Task{task("a", ">11", "2>"), task("b", "3>33", "4>4")})
	require.Equal(t, []voting.TestInput{{Task: "b", Index: 1}}, changed)
	require.NotEqual(t, voting.HashTruth([]arc.Task{task("a", "11>2")}), voting.HashTruth([]arc.Task{task("a", "1/1>2")}))
}

func TestCheckTruth(t *testing.T) {
	require.NoError(t, voting.CheckTruth([]arc.Task{task("a", "1>1"), {ID: "b"}}))
	require.ErrorContains(t, voting.CheckTruth([]arc.Task{{ID: "b"}}), "no test input")
	require.ErrorContains(t, voting.CheckTruth([]arc.Task{task("a", "1>1"), task("a", "1>1")}), `two tasks named "a"`)
}

func TestParseSubmission(t *testing.T) {
	s, err := voting.ParseSubmission([]byte("\xef\xbb\xbf" + `{"b|||_1": [{"attempt_2": [[3]], "attempt_1": null}, {"attempt_1": []}, {"attempt_1": [[]]}], "a": []}`))
	require.NoError(t, err)
	require.Equal(t, "b|||_1", s[0].ID)
	require.Equal(t, [][]arc.Grid{{{}, grid("3")}, {{}}, {{}}}, s[0].Tests)
	require.Equal(t, "a", s[1].ID)
	require.Equal(t, []string{"b|||_1 test[0].attempt_1", "b|||_1 test[1].attempt_1", "b|||_1 test[1].attempt_2",
		"b|||_1 test[2].attempt_1", "b|||_1 test[2].attempt_2"}, s.NotMade())

	for _, c := range []struct{ json, want string }{
		{`[1]`, "found [1], expected an object with a list of answers"},
		{``, "found nothing"},
		{`{"a": [{"attempt_1": [[1]]}`, "not valid JSON"},
		{`{"a": []} x`, "text behind"},
		{`{"a": [], "a": []}`, `"a" occurs twice`},
		{`{"a": {"attempt_1": [[1]]}}`, `task "a": found {"attempt_1": [[1]]}, expected a list`},
		{`{"a": null}`, `task "a": found null`},
		{`{"a": [[[1]]]}`, `task "a": test[0]: found [[1]], expected an object`},
		{`{"a": [{}, {"attempt_x": [[1]]}]}`, `task "a": test[1]: unknown key "attempt_x"`},
		{`{"a": [{"attempt_0": [[1]]}]}`, `unknown key "attempt_0"`},
		{`{"a": [{"attempt_1": "no"}]}`, `task "a": test[0].attempt_1 is "no", expected a grid`},
		{`{"a": [{"attempt_1": [[1],[1,2]]}]}`, `task "a": test[0].attempt_1 row 1 has 2 cells, expected 1`},
		{`{"a": [{"attempt_2": [[1,10]]}]}`, `task "a": test[0].attempt_2 row 0 cell 1 is 10, expected a colour 0 to 9`},
		{`{"a": [{"attempt_2": [[1,-1]]}]}`, `is -1, expected a colour`},
		{`{"a": [{"attempt_2": [[1.5]]}]}`, `is 1.5, expected a colour`},
		{`{"a": [{"attempt_2": [1]}]}`, `row 0 is 1, expected a list`},
		{`{"a": [{"attempt_2": [null]}]}`, `row 0 is null, expected a list`},
		{`{"a": [{"attempt_2": [[],[]]}]}`, `2 rows without a cell`},
	} {
		_, err := voting.ParseSubmission([]byte(c.json))
		require.ErrorContains(t, err, c.want, c.json)
		require.True(t, err.(*voting.Error).BadInput())
	}
	// All problems at once.
	_, err = voting.ParseSubmission([]byte(`{"a": [{"attempt_1": 1, "attempt_2": 2}], "b": 3}`))
	require.ErrorContains(t, err, "attempt_1 is 1")
	require.ErrorContains(t, err, "attempt_2 is 2")
	require.ErrorContains(t, err, `task "b": found 3`)

	wide, err := json.Marshal(map[string]any{"a": []any{map[string]any{"attempt_1": [][]int{make([]int, 31)}}}})
	require.NoError(t, err)
	_, err = voting.ParseSubmission(wide)
	require.ErrorContains(t, err, "is 1x31, expected at most 30x30")
}

func TestParseSolutions(t *testing.T) {
	tasks, err := voting.ParseSolutions([]byte(`{"b": [[[1, 2]], [[3]]], "a": [[[4]]]}`))
	require.NoError(t, err)
	require.Equal(t, []arc.Task{task("b", ">12", ">3"), task("a", ">4")}, tasks)
	for in, want := range map[string]string{
		`{"a": []}`:                 `task "a": found [], expected a list of grids`,
		`{"a": [[[1], 2]]}`:         `task "a": solution[0] row 1 is 2`,
		`{"a": [[]]}`:               `task "a": solution[0] is empty`,
		`{"a": [{"input": [[1]]}]}`: `task "a": solution[0] is {"input": [[1]]}`,
		`{"train": [[[1]]]`:         "cut short",
	} {
		_, err := voting.ParseSolutions([]byte(in))
		require.ErrorContains(t, err, want, in)
	}
}

// A submission that is written reads back as it was.
func TestSubmissionRoundTrip(t *testing.T) {
	s := voting.Submission{
		{ID: `q"uote`, Tests: [][]arc.Grid{{grid("012/345"), grid("9")}, {grid("1/2"), grid("0")}}},
		{ID: "none"},
	}
	var out bytes.Buffer
	require.NoError(t, s.Write(&out))
	back, err := voting.ParseSubmission(out.Bytes())
	require.NoError(t, err)
	require.Equal(t, s, back)
}
