package arc

import "fmt"

// Sheet is what a drawing shows under one title: pairs with a label each, in
// parts that are set apart. A task is one, with its demonstrations and its
// tests as parts.
type Sheet struct {
	Title string
	Parts [][]LabelledPair
}

// LabelledPair is a pair with the text above it.
type LabelledPair struct {
	Label string
	Pair
}

// Labelled returns the pairs under "NAME[0]", "NAME[1]", ...
func Labelled(name string, pairs []Pair) []LabelledPair {
	part := make([]LabelledPair, len(pairs))
	for i, p := range pairs {
		part[i] = LabelledPair{fmt.Sprintf("%s[%d]", name, i), p}
	}
	return part
}

func (t *Task) sheet() *Sheet {
	return &Sheet{Title: t.Title(), Parts: [][]LabelledPair{Labelled("train", t.Train), Labelled("test", t.Test)}}
}

func sheets(tasks []*Task) []*Sheet {
	all := make([]*Sheet, len(tasks))
	for i, t := range tasks {
		all[i] = t.sheet()
	}
	return all
}
