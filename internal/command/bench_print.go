package command

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"deeploop/internal/cli"
	"deeploop/internal/profile"
)

// print prints what a benchmark found out: doc, in which the figures are, as
// JSON where that was asked for, else for people, with the configuration's
// lines first. It returns an error when the measurement was interrupted.
func (m *Bench) print(w io.Writer, f *Figures, doc any, configuration string) (err error) {
	if m.Options.JSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(doc)
	} else {
		err = m.write(w, f, configuration)
	}
	if err == nil && f.Interrupted {
		err = fmt.Errorf("%w after %d training steps and %d %ss were timed", cli.ErrInterrupted, timed(f.TrainStep), timed(f.Eval), m.Evaluation)
	}
	return err
}

// timed is how many measurements there are.
func timed(s *profile.Spread) int {
	if s == nil {
		return 0
	}
	return s.N
}

func (m *Bench) write(w io.Writer, d *Figures, configuration string) error {
	fmt.Fprintf(w, "configuration  %s\n", configuration)
	fmt.Fprintf(w, "machine        %s, %d usable processors\n", d.Machine.Processor, d.Machine.Usable)
	fmt.Fprintf(w, "arithmetic     kernel %s, %s, %d threads\n\n", d.Kernel, d.Precision, d.Threads)
	fmt.Fprintf(w, "%-20s %11s %11s %11s %9s %9s %6s\n", "seconds", "minimum", "median", "maximum", "tokens/s", "GFLOP/s", "timed")
	row := func(name string, s *profile.Spread, tokens, gflops float64) {
		if s == nil {
			fmt.Fprintf(w, "%-20s %11s\n", name, "not timed")
			return
		}
		fmt.Fprintf(w, "%-20s %11.5f %11.5f %11.5f %9.0f %9.3g %6d\n", name, s.Min, s.Median, s.Max, tokens, gflops, s.N)
	}
	row("training step", d.TrainStep, d.TokensPerS, d.GFLOPS)
	row(m.Evaluation, d.Eval, d.EvalTokensPerS, d.EvalGFLOPS)
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
