package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"deeploop/lm"
)

// evalReport is what lm eval --json prints.
type evalReport struct {
	Checkpoint string          `json:"checkpoint"`
	Step       int             `json:"step"`
	Weights    string          `json:"weights"`
	Precision  string          `json:"precision"`
	Kernel     string          `json:"kernel"`
	Data       string          `json:"data,omitempty"`
	DataHash   string          `json:"data_hash,omitempty"`
	Split      string          `json:"split,omitempty"`
	Results    []lm.Validation `json:"results,omitempty"`
	Suites     []suiteReport   `json:"suites,omitempty"` // one for each of --shots
}

// print writes tables.
func (r *evalReport) print(w io.Writer) error {
	if len(r.Results) > 0 {
		fmt.Fprintf(w, "%s split of %s\n", r.Split, r.Data)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "loops\tnats per token\tbits per byte\ttokens right %\ttokens")
		for _, v := range r.Results {
			fmt.Fprintf(t, "%d\t%.4f\t%.4f\t%.2f\t%d\n", v.Loops, v.Loss, v.BitsPerByte, 100*v.Accuracy, v.Tokens)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for i := range r.Suites {
		if err := r.Suites[i].table(w); err != nil {
			return err
		}
	}
	return nil
}
