// Package suite measures a language model with multiple-choice questions: the
// choice that is likeliest after its context is the model's answer.
//
// # Items
//
// A suite is a file of JSON lines, one item each:
//
//	{"context": "The sky is", "choices": ["blue", "loud"], "gold": 0}
//
// gold counts from 0. Where the context depends on the choice, "contexts" has
// one per choice instead. Between context and choice comes "delimiter", which
// is one space where the item has none: no space is added to an empty context,
// one that ends in white space, or before a choice that begins with it. Other
// keys are ignored.
//
// # Scores
//
// Score of a choice is the sum of the log-probabilities of its tokens after
// the context, as in lm-evaluation-harness. Context and choice are encoded
// together, because that is how text is read: white space that ends the
// context belongs to the choice's tokens, and the choice begins with the first
// token in which the encoding of both differs from that of the context alone.
// (The harness counts the context's tokens instead. It is the same wherever
// the context's tokens begin the whole, as they do when a choice begins with a
// space.) An empty context is the document separator.
//
// Accuracy is the headline: the choice of the highest score, the first of
// equal ones, is the gold one. Length-normalised accuracy divides scores by
// the number of characters of the choice without its delimiter, as the
// harness' acc_norm does. Standard errors are those of a mean,
// sqrt(p (1-p) / (n-1)).
//
// With k shots, k other items with their gold choices come first, each
// followed by an empty line. They are drawn for every item from a stream of its
// own, so that item i has the same ones in any part of the suite.
//
// Contexts too long for the model lose their beginning.
package suite

import "fmt"

// Error is bad input: a suite or a data set that cannot be read as one.
type Error struct {
	File    string // "" where the caller knows it
	Line    int    // from 1; 0 is the whole file
	Problem string
}

func (e *Error) Error() string {
	if e.File == "" {
		return e.Problem
	}
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Problem)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
}

// BadInput tells the command line that the input is at fault.
func (e *Error) BadInput() bool { return true }
