package suite

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Task is a public multiple-choice benchmark that can be converted. The eight
// are those of the DeepLoop paper's evaluation.
type Task struct {
	Name   string
	Layout string // fields of a published row
	Prompt string // what a row becomes
	// Labels says that the answers may be in a file of their own.
	Labels bool
	key    string // of the answer, where it is a number in a field
	offset int    // the number of the first choice
	item   func(r row) (Item, error)
}

// Tasks are all tasks, by name. Prompts are those of lm-evaluation-harness.
var Tasks = []Task{
	{
		Name:   "arc_challenge",
		Layout: `{"question", "choices": {"text": [], "label": []}, "answerKey"}, or the authors' {"question": {"stem", "choices": [{"text", "label"}]}, "answerKey"}`,
		Prompt: `Question: QUESTION\nAnswer:`,
		item:   arcItem,
	},
	{
		Name:   "arc_easy",
		Layout: "as arc_challenge",
		Prompt: `Question: QUESTION\nAnswer:`,
		item:   arcItem,
	},
	{
		Name:   "hellaswag",
		Layout: `{"activity_label", "ctx_a", "ctx_b", "endings": [], "label"}, label from 0`,
		Prompt: `ACTIVITY: CTX_A CTX_B, WikiHow's [marks] removed`,
		key:    "label",
		item:   hellaswagItem,
	},
	{
		Name:   "openbookqa",
		Layout: `{"question_stem", "choices": {"text": [], "label": []}, "answerKey"}, or the authors' {"question": {"stem", "choices": [{"text", "label"}]}, "answerKey"}`,
		Prompt: `STEM`,
		item:   openBookItem,
	},
	{
		Name:   "piqa",
		Layout: `{"goal", "sol1", "sol2", "label"}, label from 0, which the authors' files have in a .lst of their own`,
		Prompt: `Question: GOAL\nAnswer:`,
		Labels: true,
		key:    "label",
		item:   piqaItem,
	},
	{
		Name:   "sciq",
		Layout: `{"question", "distractor1", "distractor2", "distractor3", "correct_answer", "support"}, lines or one JSON list`,
		Prompt: `SUPPORT\nQuestion: QUESTION\nAnswer:`,
		item:   sciqItem,
	},
	{
		Name:   "social_iqa",
		Layout: `{"context", "question", "answerA", "answerB", "answerC", "label"}, label from 1, which the authors' files have in a .lst of their own`,
		Prompt: `Q: CONTEXT QUESTION\nA:`,
		Labels: true,
		key:    "label",
		offset: 1,
		item:   socialItem,
	},
	{
		Name:   "winogrande",
		Layout: `{"sentence", "option1", "option2", "answer"}, _ in the sentence is the blank, answer from 1`,
		Prompt: `the sentence up to the blank with an option in it; both choices are what follows the blank`,
		key:    "answer",
		offset: 1,
		item:   winograndeItem,
	},
}

// FindTask returns the task of that name.
func FindTask(name string) (Task, bool) {
	i := slices.IndexFunc(Tasks, func(t Task) bool { return t.Name == name })
	if i < 0 {
		return Task{}, false
	}
	return Tasks[i], true
}

// TaskNames are the names of Tasks.
func TaskNames() []string {
	var names []string
	for _, t := range Tasks {
		names = append(names, t.Name)
	}
	return names
}

// Convert reads published rows as JSON lines, a JSON list or parquet. labels,
// which may be nil, has the answers, one a line and row. name is for errors,
// which are *Error.
func (t Task) Convert(rows io.Reader, name string, labels []string) ([]Item, error) {
	var items []Item
	err := eachRow(rows, name, func(number int, r row) error {
		it, err := t.convertRow(r, len(items), labels)
		if err != nil {
			return &Error{name, number, err.Error()}
		}
		items = append(items, it)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(items) == 0:
		return nil, &Error{name, 0, "no rows"}
	case labels != nil && len(labels) != len(items):
		return nil, &Error{name, 0, fmt.Sprintf("%d rows, but %d labels", len(items), len(labels))}
	}
	return items, nil
}

func (t Task) convertRow(r row, i int, labels []string) (Item, error) {
	if labels != nil {
		if i >= len(labels) {
			return Item{}, fmt.Errorf("more rows than labels (%d)", len(labels))
		}
		r[t.key] = labels[i]
	}
	it, err := t.item(r)
	if err != nil {
		return it, err
	}
	if t.key != "" {
		n, err := r.answer(t.key)
		if err != nil {
			return it, err
		}
		it.Gold = n - t.offset
		if it.Gold < 0 || it.Gold >= len(it.Choices) {
			return it, fmt.Errorf("%q is %d, expected %d to %d", t.key, n, t.offset, t.offset+len(it.Choices)-1)
		}
	}
	it.fixDelimiter()
	return it, it.check()
}

// fixDelimiter writes the space into the item where none would be added:
// the harness always adds one.
func (it *Item) fixDelimiter() {
	space := " "
	for i := range it.Choices {
		if _, choice := it.text(i); choice != space+it.Choices[i] {
			it.Delimiter = &space
			return
		}
	}
}

// ReadLabels reads a file of answers, one a line.
func ReadLabels(r io.Reader, name string) ([]string, error) {
	labels := []string{}
	err := eachLine(r, name, func(_ int, text []byte) error {
		labels = append(labels, strings.TrimSpace(string(text)))
		return nil
	})
	return labels, err
}
