package arc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The problem cases of users that this package answers, by their numbers in
// the project's list.

func TestT5UnknownKeysAreIgnoredWithOneWarning(t *testing.T) {
	with := func(extra string) string { return `{` + extra + `, ` + aTask("1")[1:] }
	dir := tree(t, map[string]string{
		"one/stem.json": `{"name":"x","id":"y","comment":"c","train":[{"input":[[1]],"output":[[2]],"note":[1,{"a":null}]}],"test":[{"input":[[9]]}]}`,
		"two/a.json":    with(`"name": "a", "comment": {"deep": [true, "x", -1.5e3]}`),
		"two/b.json":    with(`"comment": "c"`),
		"two/c.json":    with(`"name": 5`),
		"three/k.json":  `{"q": ` + with(`"name": "q"`) + `}`,
	})
	c := load(t, dir, "one/stem.json")
	require.Equal(t, "stem", c.Tasks[0].ID, "the id is the file's stem, whatever its name says")
	text := strings.Join(c.Warnings, "\n")
	require.Len(t, c.Warnings, 4, text)
	require.Contains(t, text, `ignored a "name" that differs from the id, kept the id: stem ("x")`)
	for _, key := range []string{"id", "comment", "train[].note"} {
		require.Contains(t, text, `ignored the key "`+key+`": `)
	}

	c = load(t, dir, "two")
	require.Len(t, c.Tasks, 3)
	text = strings.Join(c.Warnings, "\n")
	require.Len(t, c.Warnings, 2, "one warning per key for all files: %s", text)
	require.Regexp(t, `ignored the key "comment": .*a.json, .*b.json`, text)
	require.Regexp(t, `ignored the key "name": .*c.json`, text)

	require.Empty(t, load(t, dir, "three/k.json").Warnings)
}

func TestT7SolutionsMustMatchTheChallenges(t *testing.T) {
	challenges := `{"a": {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[5]]}, {"input": [[2]]}]},
		"b": {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3]]}]}}`
	for name, tc := range map[string]struct{ solutions, want string }{
		"shorter":       {`{"a": [[[1]]], "b": [[[1]]]}`, `task "a": test[1] has no output: the task has 1 output, expected 2, one for each test input in x_challenges.json`},
		"longer":        {`{"a": [[[1]],[[1]],[[1]]], "b": [[[1]]]}`, `task "a": has 3 outputs, expected 2`},
		"id absent":     {`{"a": [[[1]],[[1]]]}`, `task "b": is missing, expected 1 output: it is a task of x_challenges.json`},
		"no task":       {`{}`, `task "a": is missing, expected 2 outputs`},
		"bad grid":      {`{"a": [[[1]],[[1,2],[3]]], "b": [[[1]]]}`, `task "a": solutions[1] row 1 has 1 cell, expected 2 as in row 0`},
		"null":          {`{"a": [[[1]],null], "b": [[[1]]]}`, `task "a": solutions[1] found "null"`},
		"one grid only": {`{"a": [[1],[2]], "b": [[[1]]]}`, `task "a": solutions[0] row 0 found "1"`},
		"an array":      {`[]`, `expected an object with an array of outputs for each task`},
		"id twice":      {`{"a": [[[1]],[[1]]], "a": [[[1]],[[1]]]}`, `has the key "a" twice`},
		"cut short":     {`{"a": [[[1`, `the file ends at line 1`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, map[string]string{"x_challenges.json": challenges, "x_solutions.json": tc.solutions})
			msg := refused(t, dir, "x_challenges.json")
			require.True(t, strings.HasPrefix(msg, "x_solutions.json: "), msg)
			require.Contains(t, msg, tc.want)
		})
	}
	for _, names := range [][2]string{{"x_challenges.json", "x_solutions.json"}, {"x-challenges.json", "x-solutions.json"}, {"x_challenges.json", "x-solutions.json"}, {"challenges.json", "solutions.json"}} {
		dir := tree(t, map[string]string{names[0]: challenges, names[1]: `{"b": [[[5]]], "c": [[[1]]], "a": [[[6]],[[7, 8]]]}`})
		for _, path := range []string{names[0], "."} {
			c := load(t, dir, path)
			require.Equal(t, Grid{1, 2, []uint8{7, 8}}, c.Tasks[0].Test[1].Output)
			require.Equal(t, Grid{1, 1, []uint8{5}}, c.Tasks[1].Test[0].Output)
			require.Len(t, c.Sources, 2)
			require.Len(t, c.Warnings, 1)
			require.Contains(t, c.Warnings[0], "ignored solutions of tasks that")
			require.Contains(t, c.Warnings[0], ": c")
		}
	}
	dir := tree(t, map[string]string{"x_challenges.json": `{"a": ` + aTask("1") + `}`, "x_solutions.json": `{"a": [[[4]]]}`})
	require.Contains(t, refused(t, dir, "."), `x_solutions.json: task "a": test[0].output differs from the output in x_challenges.json`)
}

func TestT8MisshapenGridsAreNamed(t *testing.T) {
	rows := strings.TrimSuffix(strings.Repeat("[1],", 31), ",")
	for name, tc := range map[string]struct{ grid, want string }{
		"ragged":       {`[[1,2],[3]]`, `f.json: train[2].output row 1 has 1 cell, expected 2 as in row 0`},
		"a later row":  {`[[1,2,3,4,5],[1,2,3,4,5],[1,2,3,4,5],[1,2,3,4]]`, `f.json: train[2].output row 3 has 4 cells, expected 5`},
		"31x1":         {`[` + rows + `]`, `f.json: train[2].output has 31 rows, expected 1 to 30`},
		"1x31":         {`[[` + strings.NewReplacer("[", "", "]", "").Replace(rows) + `]]`, `f.json: train[2].output row 0 has 31 cells, expected 1 to 30`},
		"no rectangle": {`[[],[1]]`, `f.json: train[2].output row 0 is empty, expected 1 to 30 cells`},
	} {
		t.Run(name, func(t *testing.T) {
			const ok = `{"input":[[1]],"output":[[1]]}`
			dir := tree(t, map[string]string{"f.json": `{"train":[` + ok + `,` + ok + `,{"input":[[1]],"output":` + tc.grid + `}],"test":[` + ok + `]}`})
			require.Contains(t, refused(t, dir, "f.json"), tc.want)
		})
	}
	full := "[" + strings.TrimSuffix(strings.Repeat("["+strings.TrimSuffix(strings.Repeat("9,", 30), ",")+"],", 30), ",") + "]"
	dir := tree(t, map[string]string{"f.json": `{"train":[{"input":` + full + `,"output":[[0]]}],"test":[{"input":[[1]]}]}`})
	require.Len(t, load(t, dir, "f.json").Tasks[0].Train[0].Input.Cells, 900)
}

func TestT13TestInputAlsoInTrainIsKept(t *testing.T) {
	dir := tree(t, map[string]string{
		"MinimalTasks/CenterMinimal.json": `{"train":[{"input":[[7]],"output":[[2]]},{"input":[[1]],"output":[[2]]}],"test":[{"input":[[3]],"output":[[2]]},{"input":[[1]],"output":[[2]]}]}`,
		"MinimalTasks/Fine.json":          `{"train":[{"input":[[1,1]],"output":[[2]]}],"test":[{"input":[[1],[1]],"output":[[2]]}]}`,
	})
	c := load(t, dir, ".")
	require.Equal(t, []Overlap{{Test: 1, Train: 1}}, c.Tasks[0].TestAlsoInTrain())
	require.Len(t, c.Tasks[0].Train, 2)
	require.Len(t, c.Tasks[0].Test, 2)
	require.Empty(t, c.Tasks[1].TestAlsoInTrain())
	require.Equal(t, []string{"test input also in train (kept): CenterMinimal test[1] = train[1]"}, c.Warnings)
}

func TestT14OneIDInTwoFoldersIsNotMerged(t *testing.T) {
	dir := tree(t, map[string]string{
		"set/training/x.json": aTask("1"), "set/evaluation/x.json": aTask("2"),
		"set/training/y.json": aTask("3"), "set/evaluation/z.json": aTask("4"),
		"other/training/y.json": "\n" + aTask("3"),
	})
	c := load(t, dir, "set", "other")
	require.Equal(t, []string{"evaluation/x*", "evaluation/z*", "training/x", "training/y", "training/y"}, listing(c))
	require.Equal(t, []Clash{{ID: "x", Tasks: []int{0, 2}}, {ID: "y", Tasks: []int{3, 4}, Identical: true}}, c.Clashes())
	require.Len(t, c.Find("x"), 2)
	require.Len(t, c.Warnings, 2)
	require.Regexp(t, `^different tasks share an id \(all kept\): x in .*evaluation.x.json and .*training.x.json$`, c.Warnings[0])
	require.Regexp(t, `^the same task occurs more than once \(all kept\): y in `, c.Warnings[1])
	require.Empty(t, load(t, dir, "other").Clashes())
}

func TestT24NothingIsRepaired(t *testing.T) {
	pair := func(in, out string) string { return `{"input":` + in + `,"output":` + out + `}` }
	text := `{"train":[` + pair("[[1,2]]", "[[2,1]]") + `,` + pair("[[3,4]]", "[[4]]") + `,` + pair("[[5,6]]", "[[6,5]]") + `],"test":[` + pair("[[1]]", "[[1]]") + `]}`
	dir := tree(t, map[string]string{"f.json": text})
	c := load(t, dir, ".")
	require.Empty(t, c.Warnings)
	require.Equal(t, Grid{1, 1, []uint8{4}}, c.Tasks[0].Train[1].Output)
	hint, odd := c.Tasks[0].OddPair()
	require.True(t, odd)
	require.Contains(t, hint, "train[1]: output is 1x1, input 1x2")

	task := Task{Train: []Pair{{NewGrid(5, 5), NewGrid(2, 2)}, {NewGrid(6, 6), NewGrid(3, 2)}, {NewGrid(7, 7), NewGrid(2, 2)}}}
	hint, odd = task.OddPair()
	require.True(t, odd)
	require.Contains(t, hint, "train[1]: output is 3x2; in all other demonstrations it is 2x2")
	task.Train[2].Output = NewGrid(1, 1)
	_, odd = task.OddPair()
	require.False(t, odd, "three sizes have no common one")
	task.Train = task.Train[:2]
	_, odd = task.OddPair()
	require.False(t, odd, "two demonstrations have no majority")
}

func TestT25AnyNumberOfPairs(t *testing.T) {
	dir := tree(t, map[string]string{"corpus/Order/Order1.json": `{"train":[{"input":[[1]],"output":[[1]]}],"test":[{"input":[[2]],"output":[[2]]},{"input":[[3]],"output":[[3]]},{"input":[[4]],"output":[[4]]}]}`})
	c := load(t, dir, ".")
	require.Len(t, c.Tasks[0].Train, 1)
	require.Len(t, c.Tasks[0].Test, 3)
	require.False(t, c.Tasks[0].HoldOut)
	require.Empty(t, c.Warnings)
}
