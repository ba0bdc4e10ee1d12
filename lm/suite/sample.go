package suite

import (
	_ "embed"
	"strings"
)

//go:embed sample.jsonl
var sampleFile string

// SampleName is the name of the suite that comes with the program.
const SampleName = "sample"

// Sample is a small suite of everyday questions, written for this project. It
// shows that a model has learned anything at all, and how a suite is written.
func Sample() []Item {
	items, err := Read(strings.NewReader(sampleFile), SampleName)
	if err != nil {
		panic("suite: the embedded sample is broken: " + err.Error())
	}
	return items
}
