package arc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseRefuses(t *testing.T) {
	const pair = `{"input":[[1,2]],"output":[[1]]}`
	grid := func(g string) string {
		return `{"train":[` + pair + `,{"input":[[1]],"output":` + g + `}],"test":[` + pair + `]}`
	}
	rows := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("[1],", n), ",") + "]" }
	for _, tc := range []struct{ name, text, want string }{
		{"number with a fraction", grid(`[[1,3.5]]`), `f.json: train[1].output row 0 column 1: found "3.5" at line 1, column 72, expected a whole number from 0 to 9`},
		{"whole number as a fraction", grid(`[[1.0]]`), `found "1.0"`},
		{"exponent", grid(`[[1e0]]`), `found "1e0"`},
		{"text", grid(`[[1],["a"]]`), `train[1].output row 1 column 0: found the text "a"`},
		{"null cell", grid(`[[null]]`), `found "null"`},
		{"true", grid(`[[true]]`), `found "true"`},
		{"ten", grid(`[[10]]`), `found "10" at line 1, column 70, expected a whole number from 0 to 9`},
		{"negative", grid(`[[-1]]`), `found "-1"`},
		{"minus zero", grid(`[[-0]]`), `found "-0"`},
		{"leading zero", grid(`[[01]]`), `found "01"`},
		{"not a number", grid(`[[NaN]]`), `found "NaN"`},
		{"empty grid", grid(`[]`), `train[1].output is an empty grid, expected 1 to 30 rows`},
		{"empty row", grid(`[[]]`), `train[1].output row 0 is empty, expected 1 to 30 cells`},
		{"empty later row", grid(`[[1],[]]`), `train[1].output row 1 has 0 cells, expected 1 as in row 0`},
		{"rows that are numbers", grid(`[1,2]`), `train[1].output row 0 found "1" at line 1, column 69, expected an array of colours`},
		{"a grid that is a number", grid(`7`), `train[1].output found "7"`},
		{"a grid of grids", grid(`[[[1]]]`), `row 0 column 0: found an array`},
		{"null for a training output", grid(`null`), `train[1].output found "null"`},
		{"31 rows of 1000", grid("[" + strings.TrimSuffix(strings.Repeat("["+strings.TrimSuffix(strings.Repeat("1,", 1000), ",")+"],", 31), ",") + "]"), `row 0 has 1000 cells, expected 1 to 30`},
		{"1000 rows", grid(rows(1000)), `train[1].output has 1000 rows, expected 1 to 30`},
		{"cut short in a row", grid(`[[1],[1`)[:74], `train[1].output row 1 the file ends at line 1, column 75 (cut short?)`},
		{"cut short in a key", `{"train":[{"inp`, `train[0] the file ends inside the text that starts at line 1, column 12 (cut short?)`},
		{"comma before the bracket", `{"train":[` + pair + `,],"test":[` + pair + `]}`, `train[1] found "]" at line 1, column 44, expected an object`},
		{"missing comma", "{\n\"train\":[" + pair + "]\n\"test\":[" + pair + "]}", `found the text "test" at line 3, column 1, expected a comma or a closing brace`},
		{"something after the task", grid(`[[1]]`) + "\n]", `found "]" at line 2, column 1, expected the end of the file`},
		{"two tasks", grid(`[[1]]`) + grid(`[[1]]`), `expected the end of the file`},
		{"section twice", `{"train":[` + pair + `],"test":[` + pair + `],"train":[` + pair + `]}`, `has the key "train" twice (again at line 1, column 87), expected it once`},
		{"input twice", `{"train":[{"input":[[1]],"output":[[1]],"input":[[2]]}],"test":[` + pair + `]}`, `train[0] has the key "input" twice`},
		{"escaped key twice", `{"a":1,"\u0061":2}`, `has the key "a" twice`},
		{"no train", `{"test":[` + pair + `]}`, `has "test" but no "train", expected both`},
		{"no test", `{"train":[` + pair + `]}`, `has "train" but no "test", expected both`},
		{"neither", `{"Train":[],"b":2}`, `has neither "train" nor "test" (keys found: "Train", "b"), expected both`},
		{"no key", `{}`, `(keys found: none)`},
		{"empty train", `{"train":[],"test":[` + pair + `]}`, `train is empty, expected at least one pair`},
		{"empty test", `{"train":[` + pair + `],"test":[]}`, `test is empty, expected at least one pair`},
		{"train is an object", `{"train":{},"test":[` + pair + `]}`, `train found an object at line 1, column 10, expected an array of pairs`},
		{"a pair is a number", `{"train":[` + pair + `,7],"test":[` + pair + `]}`, `train[1] found "7"`},
		{"no output in train", `{"train":[{"input":[[1]]}],"test":[` + pair + `]}`, `train[0] has no "output", expected one (only test pairs may lack it)`},
		{"no input in test", `{"train":[` + pair + `],"test":[` + pair + `,{"output":[[1]]}]}`, `test[1] has no "input", expected one`},
		{"list of pairs", `[` + pair + `]`, `holds an array, expected an object with "train" and "test"`},
		{"number", `5`, `found "5" at line 1, column 1, expected an object`},
		{"nothing", "", `is empty, expected a JSON object`},
		{"only space", " \n\t", `is empty, expected a JSON object`},
		{"byte order mark", "\uFEFF" + grid(`[[1]]`), `starts with a byte order mark (EF BB BF), expected plain UTF-8`},
		{"UTF-16", "\xFF\xFE{\x00", `is UTF-16, expected UTF-8`},
		{"binary", "\x1F\x8B\x08\x00", `found "\x1f\x8b\b\x00" at line 1, column 1`},
		{"bytes that are not UTF-8", "{\"n\xE4me\":1}", `found bytes that are not UTF-8`},
		{"single quotes", `{'train':[]}`, `expected a text in double quotes`},
		{"control character", "{\"a\nb\":1}", `found a control character inside a text`},
		{"bad escape", `{"a\x":1}`, `bad escape`},
		{"deep arrays", `{"a":` + strings.Repeat("[", 1_000_000), `nests deeper than 64 values`},
		{"deep objects", strings.Repeat(`{"a":`, 1_000_000), `nests deeper than 64 values`},
		{"wrong value in an ignored key", `{"a":nul,"train":[` + pair + `],"test":[` + pair + `]}`, `found "nul" at line 1, column 6, expected a JSON value`},
		{"task of a combined file", `{"a":` + grid(`[[1]]`) + `,"b":` + grid(`[[1],[2,3]]`) + `}`, `f.json: task "b": train[1].output row 1 has 2 cells, expected 1 as in row 0`},
		{"combined file with something else", `{"a":` + grid(`[[1]]`) + `,"b":{"x":1}}`, `task "b": has neither "train" nor "test" (keys found: "x")`},
		{"combined file with an empty name", `{"":` + grid(`[[1]]`) + `}`, `has a task with an empty name`},
		{"solutions alone", `{"a":[[[1]]],"b":[[[1]]]}`, `name the challenges file instead`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := tree(t, map[string]string{"f.json": tc.text})
			require.Contains(t, refused(t, dir, "f.json"), tc.want)
		})
	}
}

func TestErrorFields(t *testing.T) {
	_, err := parseFile("f.json", "f", []byte(`{"a":{"train":[{"input":[[1],[2],[3,4]],"output":[[1]]}],"test":[]}}`), &notes{})
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, &Error{File: "f.json", Task: "a", Section: "train", Index: 0, Part: "input", Row: 2, Problem: "has 2 cells, expected 1 as in row 0"}, e)
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{aTask("1"), `{"a":` + aTask("2") + `,"b":` + aTask("3") + `}`, `{"train":[],"test":[{"input":[[1],[2,3]]}]}`,
		`{"name":"f","x":{"y":[1.5e3,true,null,"\n"]},"test":[{"input":[[9]]}],"train":[{"input":[[0]],"output":[[1,2],[3,4]]}]}`, `{"a":[[[1]]]}`, "[", "{\"", "\xEF\xBB\xBF{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		content, err := parseFile("f.json", "f", data, &notes{})
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			return
		}
		for _, task := range content.tasks {
			require.NotEmpty(t, task.Train)
			require.NotEmpty(t, task.Test)
			for _, p := range append(append([]Pair(nil), task.Train...), task.Test...) {
				for _, g := range []Grid{p.Input, p.Output} {
					require.Len(t, g.Cells, g.Rows*g.Cols)
					require.LessOrEqual(t, max(g.Rows, g.Cols), MaxSide)
				}
				require.False(t, p.Input.Empty())
			}
			again, err := parseFile("f.json", task.ID, task.JSON(), &notes{})
			require.NoError(t, err)
			require.Len(t, again.tasks, 1)
			require.Equal(t, task, again.tasks[0])
		}
	})
}
