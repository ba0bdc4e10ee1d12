package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"deeploop/internal/profile"
)

func (d *benchDoc) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// write prints the document for people.
func (d *benchDoc) write(w io.Writer) error {
	c := d.Config
	fmt.Fprintf(w, "configuration  hidden %d, %d heads, %d+%d blocks, cycles %dx%d, %d cells, batch %d, %s: %d parameters\n",
		c.Hidden, c.Heads, c.HLayers, c.LLayers, c.HCycles, c.LCycles, c.SeqLen, c.Batch, c.Placement, c.Parameters)
	fmt.Fprintf(w, "machine        %s, %d usable processors\n", d.Machine.Processor, d.Machine.Usable)
	fmt.Fprintf(w, "arithmetic     kernel %s, %s, %d threads\n\n", d.Kernel, d.Precision, d.Threads)
	fmt.Fprintf(w, "%-20s %11s %11s %11s %9s %9s %6s\n", "seconds", "minimum", "median", "maximum", "tokens/s", "GFLOP/s", "timed")
	row := func(name string, s *spread, tokens, gflops float64) {
		if s == nil {
			fmt.Fprintf(w, "%-20s %11s\n", name, "not timed")
			return
		}
		fmt.Fprintf(w, "%-20s %11.5f %11.5f %11.5f %9.0f %9.3g %6d\n", name, s.Min, s.Median, s.Max, tokens, gflops, s.N)
	}
	row("training step", d.TrainStep, d.TokensPerS, d.GFLOPS)
	row("evaluation segment", d.EvalSegment, d.EvalTokensPerS, d.EvalGFLOPS)
	fmt.Fprintln(w)
	if d.CeilingShare != nil {
		fmt.Fprintf(w, "share of ceiling     %.1f%% of the %.4g GFLOP/s that this kernel multiplies here at best", 100**d.CeilingShare, d.CeilingGFLOPS)
		if d.EvalCeilingShare != nil {
			fmt.Fprintf(w, "; evaluation %.1f%%", 100**d.EvalCeilingShare)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "memory               %.0f MB resident at most; %.1f kB of heap allocated in each step\n", float64(d.PeakRSS)/1e6, d.HeapBytes/1e3)
	_, err := fmt.Fprintf(w, "%-20s %s at the median, %s at the fastest\n", fmt.Sprintf("%d steps take", d.Steps), took(d.StepsSeconds), took(d.StepsLeast))
	for _, p := range []*profile.Report{d.Profile, d.EvalProfile} {
		if p != nil {
			fmt.Fprintln(w)
			err = p.Write(w)
		}
	}
	return err
}

// took writes seconds as 1h2m3s, with fractions below a minute.
func took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < time.Minute {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
