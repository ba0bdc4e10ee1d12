package suite

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lettered reads choices with labels (A, B, ... or 1, 2, ...) and the label of
// the right one.
func lettered(r row) (stem string, it Item, err error) {
	var labels []string
	if q, ok := r.sub("question"); ok { // the authors' layout
		if stem, err = q.text("stem"); err != nil {
			return "", it, err
		}
		choices, ok := q["choices"].([]any)
		if !ok {
			return "", it, errors.New(`no list "question.choices"; is this a file of the task?`)
		}
		for i, c := range choices {
			object, _ := c.(map[string]any)
			both, err := row(object).texts("text", "label")
			if err != nil {
				return "", it, fmt.Errorf("question.choices[%d]: %w", i, err)
			}
			it.Choices, labels = append(it.Choices, both[0]), append(labels, both[1])
		}
	} else {
		choices, ok := r.sub("choices")
		if !ok {
			return "", it, errors.New(`no "choices" with "text" and "label"; is this a file of the task?`)
		}
		if it.Choices, err = choices.list("text"); err != nil {
			return "", it, err
		}
		if labels, err = choices.list("label"); err != nil {
			return "", it, err
		}
		if len(labels) != len(it.Choices) {
			return "", it, fmt.Errorf("%d labels for %d choices", len(labels), len(it.Choices))
		}
	}
	key, err := r.text("answerKey")
	if err != nil {
		return "", it, err
	}
	if key = strings.TrimSpace(key); key == "" {
		return "", it, errors.New("answerKey is empty: this split is published without answers; convert another")
	}
	if it.Gold = slices.Index(labels, key); it.Gold < 0 {
		return "", it, fmt.Errorf("answerKey is %q, expected one of %s", key, strings.Join(labels, ", "))
	}
	return stem, it, nil
}

func arcItem(r row) (Item, error) {
	stem, it, err := lettered(r)
	if err == nil && stem == "" {
		stem, err = r.text("question")
	}
	it.Context = "Question: " + stem + "\nAnswer:"
	return it, err
}

func openBookItem(r row) (Item, error) {
	stem, it, err := lettered(r)
	if err == nil && stem == "" {
		stem, err = r.text("question_stem")
	}
	it.Context = stem
	return it, err
}

var wikiHowMark = regexp.MustCompile(`\[.*?\]`)

// withoutMarks removes what the WikiHow part of HellaSwag has in brackets.
func withoutMarks(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), " [title]", ". ")
	return strings.ReplaceAll(wikiHowMark.ReplaceAllString(text, ""), "  ", " ")
}

// capitalized has its first letter in upper case, all others in lower case.
func capitalized(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	if n == 0 {
		return ""
	}
	return string(unicode.ToTitle(r)) + strings.ToLower(text[n:])
}

func hellaswagItem(r row) (Item, error) {
	parts, err := r.texts("activity_label", "ctx_a", "ctx_b")
	if err != nil {
		return Item{}, err
	}
	endings, err := r.list("endings")
	if err != nil {
		return Item{}, err
	}
	it := Item{Context: withoutMarks(parts[0] + ": " + parts[1] + " " + capitalized(parts[2]))}
	for _, e := range endings {
		it.Choices = append(it.Choices, withoutMarks(e))
	}
	return it, nil
}

func piqaItem(r row) (Item, error) {
	goal, err := r.text("goal")
	if err != nil {
		return Item{}, err
	}
	choices, err := r.texts("sol1", "sol2")
	return Item{Context: "Question: " + goal + "\nAnswer:", Choices: choices}, err
}

func sciqItem(r row) (Item, error) {
	parts, err := r.texts("support", "question")
	if err != nil {
		return Item{}, err
	}
	choices, err := r.texts("distractor1", "distractor2", "distractor3", "correct_answer")
	support := strings.TrimLeftFunc(parts[0], unicode.IsSpace)
	return Item{Context: support + "\nQuestion: " + parts[1] + "\nAnswer:", Choices: choices, Gold: 3}, err
}

func socialItem(r row) (Item, error) {
	parts, err := r.texts("context", "question")
	if err != nil {
		return Item{}, err
	}
	choices, err := r.texts("answerA", "answerB", "answerC")
	return Item{Context: "Q: " + parts[0] + " " + parts[1] + "\nA:", Choices: choices}, err
}

// winograndeItem scores the continuation after each option (Trinh and Le
// 2018, "partial" scoring).
func winograndeItem(r row) (Item, error) {
	sentence, err := r.text("sentence")
	if err != nil {
		return Item{}, err
	}
	options, err := r.texts("option1", "option2")
	if err != nil {
		return Item{}, err
	}
	before, after, found := strings.Cut(sentence, "_")
	if !found {
		return Item{}, fmt.Errorf("no _ in sentence %q", sentence)
	}
	after = strings.TrimSpace(after)
	if after == "" {
		return Item{}, fmt.Errorf("nothing follows the _ in sentence %q", sentence)
	}
	it := Item{}
	for _, o := range options {
		it.Contexts, it.Choices = append(it.Contexts, before+o), append(it.Choices, after)
	}
	return it, nil
}
