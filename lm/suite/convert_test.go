package suite

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rows in every published layout, made up for this test.
var layouts = []struct {
	task, rows, labels string
	want               []Item
}{
	{
		task: "arc_easy",
		rows: `{"id":"x1","question":"What melts?","choices":{"text":["ice","rock"],"label":["A","B"]},"answerKey":"A"}
{"id":"x2","question":"What floats?","choices":{"text":["lead","wood","iron"],"label":["1","2","3"]},"answerKey":"2"}`,
		want: []Item{
			{Context: "Question: What melts?\nAnswer:", Choices: []string{"ice", "rock"}, Gold: 0},
			{Context: "Question: What floats?\nAnswer:", Choices: []string{"lead", "wood", "iron"}, Gold: 1},
		},
	},
	{
		task: "arc_challenge",
		rows: `{"id":"x1","question":{"stem":"What melts?","choices":[{"text":"rock","label":"A"},{"text":"ice","label":"B"}]},"answerKey":"B"}`,
		want: []Item{{Context: "Question: What melts?\nAnswer:", Choices: []string{"rock", "ice"}, Gold: 1}},
	},
	{
		task: "hellaswag",
		rows: `{"ind":1,"activity_label":"Painting","ctx_a":"A man opens a tin.","ctx_b":"he THEN","ctx":"unused","endings":["dips a brush."," [title] eats  it [step] whole."],"label":"0"}
{"activity_label":"Cooking","ctx_a":"How to boil [title] Water [substeps] first.","ctx_b":"","endings":["ok [x] so","no"],"label":1}`,
		want: []Item{
			{Context: "Painting: A man opens a tin. He then", Choices: []string{"dips a brush.", " eats it whole."}, Gold: 0, Delimiter: ptr(" ")},
			{Context: "Cooking: How to boil. Water first.", Choices: []string{"ok so", "no"}, Gold: 1},
		},
	},
	{
		task: "openbookqa",
		rows: `{"id":"7","question_stem":"A lamp gives","choices":{"text":["light","bread"],"label":["A","B"]},"answerKey":" A"}
{"id":"8","question":{"stem":"A pump moves","choices":[{"text":"light","label":"A"},{"text":"water","label":"B"}]},"answerKey":"B"}`,
		want: []Item{
			{Context: "A lamp gives", Choices: []string{"light", "bread"}, Gold: 0},
			{Context: "A pump moves", Choices: []string{"light", "water"}, Gold: 1},
		},
	},
	{
		task: "piqa",
		rows: `{"goal":"Dry a shirt","sol1":"Hang it up.","sol2":"Wet it.","label":1}`,
		want: []Item{{Context: "Question: Dry a shirt\nAnswer:", Choices: []string{"Hang it up.", "Wet it."}, Gold: 1}},
	},
	{
		task:   "piqa",
		rows:   `{"id":"a","goal":"Dry a shirt","sol1":"Hang it up.","sol2":"Wet it."}` + "\n" + `{"goal":"g","sol1":"s","sol2":"t"}`,
		labels: "0\n1\n",
		want: []Item{
			{Context: "Question: Dry a shirt\nAnswer:", Choices: []string{"Hang it up.", "Wet it."}, Gold: 0},
			{Context: "Question: g\nAnswer:", Choices: []string{"s", "t"}, Gold: 1},
		},
	},
	{
		task: "sciq",
		rows: ` [{"question":"What is it?","distractor1":"a","distractor2":"b","distractor3":"c","correct_answer":"d","support":" It is d."},
{"question":"And this?","distractor3":"c","distractor1":"a","distractor2":"b","correct_answer":"d","support":""}]`,
		want: []Item{
			{Context: "It is d.\nQuestion: What is it?\nAnswer:", Choices: []string{"a", "b", "c", "d"}, Gold: 3},
			{Context: "\nQuestion: And this?\nAnswer:", Choices: []string{"a", "b", "c", "d"}, Gold: 3},
		},
	},
	{
		task: "social_iqa",
		rows: `{"context":"Kim fell.","question":"What will Kim do?","answerA":"stand up","answerB":"fly","answerC":"boil","label":"1"}`,
		want: []Item{{Context: "Q: Kim fell. What will Kim do?\nA:", Choices: []string{"stand up", "fly", "boil"}, Gold: 0}},
	},
	{
		task:   "social_iqa",
		rows:   `{"context":"Kim fell.","question":"What will Kim do?","answerA":"boil","answerB":"fly","answerC":"stand up"}`,
		labels: "3",
		want:   []Item{{Context: "Q: Kim fell. What will Kim do?\nA:", Choices: []string{"boil", "fly", "stand up"}, Gold: 2}},
	},
	{
		task: "winogrande",
		rows: `{"qID":"q","sentence":"Lee called Ray since _ was lost, not _.","option1":"Lee","option2":"Ray","answer":"2"}`,
		want: []Item{{Contexts: []string{"Lee called Ray since Lee", "Lee called Ray since Ray"}, Choices: []string{"was lost, not _.", "was lost, not _."}, Gold: 1}},
	},
}

func TestConvertEveryPublishedLayout(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range layouts {
		task, found := FindTask(c.task)
		require.True(t, found)
		seen[c.task] = true
		var labels []string
		if c.labels != "" {
			require.True(t, task.Labels)
			var err error
			labels, err = ReadLabels(strings.NewReader(c.labels), "l.lst")
			require.NoError(t, err)
		}
		got, err := task.Convert(strings.NewReader(c.rows), "rows", labels)
		require.NoError(t, err, c.task)
		require.Equal(t, c.want, got, c.task)

		var b bytes.Buffer
		require.NoError(t, Write(&b, got))
		back, err := Read(&b, "back")
		require.NoError(t, err, c.task)
		require.Equal(t, got, back)
	}
	for _, name := range TaskNames() {
		require.True(t, seen[name], "%s has no rows here", name)
	}
	require.Len(t, Tasks, 8)
	_, found := FindTask("mmlu")
	require.False(t, found)
}

func TestConvertSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ task, rows, labels, says string }{
		{"arc_easy", `{"question":"q","choices":{"text":["a","b"],"label":["A","B"]},"answerKey":"E"}`, "", `rows:1: answerKey is "E", expected one of A, B`},
		{"arc_easy", `{"question":"q","choices":{"text":["a","b"],"label":["A","B"]},"answerKey":""}`, "", "published without answers"},
		{"arc_easy", `{"question":"q","choices":{"text":["a","b"],"label":["A"]},"answerKey":"A"}`, "", "1 labels for 2 choices"},
		{"arc_easy", `{"question":"q","choices":{"text":["a",3],"label":["A","B"]},"answerKey":"A"}`, "", `"text": entry 1 is not a string`},
		{"arc_easy", `{"question":{"stem":"q","choices":[7]},"answerKey":"A"}`, "", "question.choices[0]"},
		{"arc_easy", `{"goal":"g"}`, "", "is this a file of the task?"},
		{"hellaswag", `{"activity_label":"a","ctx_a":"b","ctx_b":"c","endings":["x","y"],"label":""}`, "", "published without answers"},
		{"hellaswag", `{"activity_label":"a","ctx_a":"b","ctx_b":"c","endings":["x","y"],"label":"2"}`, "", `"label" is 2, expected 0 to 1`},
		{"piqa", `{"goal":"g","sol1":"a","sol2":"b"}`, "", "--labels"},
		{"piqa", `{"goal":"g","sol1":"a","sol2":"b","label":-1}`, "", "published without answers"},
		{"piqa", `{"goal":"g","sol1":"a","sol2":"b"}`, "0\n1", "1 rows, but 2 labels"},
		{"piqa", `{"goal":"g","sol1":"a","sol2":"b"}` + "\n" + `{"goal":"g","sol1":"a","sol2":"b"}`, "0", "rows:2: more rows than labels (1)"},
		{"piqa", `{"goal":"g","sol1":"a","sol2":"b"}`, "x", `"label" is "x", expected a number`},
		{"piqa", `{"goal":"g","sol1":"a","sol2":"","label":0}`, "", "choice 1 is empty"},
		{"piqa", `{"goal":4,"sol1":"a","sol2":"b","label":0}`, "", `"goal" is not a string`},
		{"social_iqa", `{"context":"c","question":"q","answerA":"a","answerB":"b","answerC":"c","label":"0"}`, "", `"label" is 0, expected 1 to 3`},
		{"winogrande", `{"sentence":"no blank","option1":"a","option2":"b","answer":"1"}`, "", "no _ in sentence"},
		{"winogrande", `{"sentence":"it is _","option1":"a","option2":"b","answer":"1"}`, "", "nothing follows the _"},
		{"sciq", `[{"question":"q"`, "", "row 1: not valid JSON"},
		{"sciq", `[`, "", "the list does not end"},
		{"sciq", `[]`, "", "no rows"},
		{"sciq", "PAR1\x15\x04", "", "the parquet data is cut or damaged"},
		{"sciq", ``, "", "no rows"},
		{"sciq", `[3]`, "", "row 1: a JSON number, expected an object"},
		{"sciq", "{}\n{", "", "rows:1: no \"support\""},
	} {
		task, _ := FindTask(c.task)
		var labels []string
		if c.labels != "" {
			labels = strings.Split(c.labels, "\n")
		}
		_, err := task.Convert(strings.NewReader(c.rows), "rows", labels)
		var bad *Error
		require.ErrorAs(t, err, &bad, c.rows)
		require.ErrorContains(t, err, c.says, c.rows)
	}
}
