package main

import (
	"fmt"
	"slices"
	"strings"

	"deeploop/bench"
	"deeploop/bench/ours"
	"deeploop/internal/profile"
)

// samples are one side's figures, one of each kind per round.
type samples struct {
	seconds, before, after []float64
}

// put stores round i's seconds; a repeated round replaces them.
func (s *samples) put(i int, seconds float64) { s.seconds = append(s.seconds[:i], seconds) }

func (s *samples) ceiling(i int, before, after float64) {
	s.before, s.after = append(s.before[:i], before), append(s.after[:i], after)
}

// ceilings are the higher of the probes before and after, in GFLOP/s.
func (s samples) ceilings() []float64 {
	c := make([]float64, len(s.before))
	for i := range c {
		c[i] = max(s.before[i], s.after[i])
	}
	return c
}

// result is one comparison. Seconds are of one training step.
type result struct {
	Config    bench.Config `json:"config"`
	Kernel    string       `json:"kernel"`
	Precision string       `json:"precision"`
	Threads   int          `json:"threads"`
	Choice    *choice      `json:"peer_choice,omitempty"`

	Seconds     profile.Spread `json:"seconds"`
	PeerSeconds profile.Spread `json:"peer_seconds"`
	Ratio       profile.Spread `json:"times_faster"` // the peer's seconds over ours, within a round
	OneThread   profile.Spread `json:"seconds_one_thread"`

	Gigaflop  float64        `json:"gflop"` // of one step, ours.TrainStepFlops
	Before    profile.Spread `json:"ceiling_before_gflops"`
	After     profile.Spread `json:"ceiling_after_gflops"`
	Share     profile.Spread `json:"ceiling_share"`
	ShareOne  profile.Spread `json:"ceiling_share_one_thread"`
	Scaling   float64        `json:"scaling"`         // one thread's median over that of all
	ScalingOf float64        `json:"ceiling_scaling"` // the same of the ceiling

	RSS       int64 `json:"peak_rss_bytes"`
	PeerRSS   int64 `json:"peer_peak_rss_bytes"`
	Disturbed int   `json:"disturbed_samples"`

	many, one, peer samples
}

func (r *result) summarise() {
	r.Seconds, r.OneThread, r.PeerSeconds = profile.SpreadOf(r.many.seconds), profile.SpreadOf(r.one.seconds), profile.SpreadOf(r.peer.seconds)
	r.Ratio = profile.SpreadOf(bench.Ratios(r.peer.seconds, r.many.seconds))
	r.Before, r.After = profile.SpreadOf(r.many.before), profile.SpreadOf(r.many.after)
	r.Gigaflop = ours.TrainStepFlops(r.Config) / 1e9
	share := func(s samples) profile.Spread {
		rate := make([]float64, len(s.seconds))
		for i, t := range s.seconds {
			rate[i] = r.Gigaflop / t
		}
		return profile.SpreadOf(bench.Ratios(rate, s.ceilings()))
	}
	r.Share, r.ShareOne = share(r.many), share(r.one)
	r.Scaling = r.OneThread.Median / r.Seconds.Median
	r.ScalingOf = profile.SpreadOf(r.many.ceilings()).Median / profile.SpreadOf(r.one.ceilings()).Median
}

func (r *result) line() string {
	return fmt.Sprintf("%s %s %s: %.3f s, one thread %.3f s, peer %.3f s (%v), %.2f times faster, %.0f %% of the ceiling",
		r.Config.Name, r.Precision, r.Kernel, r.Seconds.Median, r.OneThread.Median, r.PeerSeconds.Median, r.Choice, r.Ratio.Median, 100*r.Share.Median)
}

// document is what the JSON file holds.
type document struct {
	Machine bench.Machine `json:"machine"`
	Steps   []result      `json:"steps"`
	Tried   []tried       `json:"peer_choices"`
}

// tried is the fastest way to run the peer for a kernel, precision and size.
type tried struct {
	Kernel string `json:"kernel"`
	Size   string `json:"size"`
	Best   choice `json:"best"`
}

func (d document) markdown() string {
	var b strings.Builder
	b.WriteString(d.Machine.Heading("Training steps") + "Seconds are minimum / median / maximum.\n\n")
	var told []string
	for _, r := range d.Steps {
		if !slices.Contains(told, r.Config.Name) {
			told = append(told, r.Config.Name)
			fmt.Fprintf(&b, "- %s: %s\n", r.Config.Name, r.Config.Describe())
		}
	}
	b.WriteString("\n")
	fmt.Fprintf(&b, "| size | precision | kernel | ours, s | ours on 1 thread, s | peer, s | peer's best | times faster | share of ceiling | ceiling before, after GFLOP/s | threads' gain (ceiling's) | peak memory, MB | disturbed |\n|%s\n", strings.Repeat(" --- |", 13))
	for _, r := range d.Steps {
		choice, memory := "-", fmt.Sprint(r.RSS>>20)
		if r.Choice != nil {
			choice = r.Choice.String()
			memory += fmt.Sprintf(" of the peer's %d (%.2f)", r.PeerRSS>>20, float64(r.RSS)/float64(r.PeerRSS))
		}
		fmt.Fprintf(&b, "| %s | %s | %s x%d | %s | %s | %s | %s | %s | %s | %.0f, %.0f | %.2f (%.2f) | %s | %d |\n",
			r.Config.Name, r.Precision, r.Kernel, r.Threads, r.Seconds.Format("%.3f"), r.OneThread.Format("%.3f"), r.PeerSeconds.Format("%.3f"), choice,
			r.Ratio.Format("%.2f"), r.Share.Format("%.2f"), r.Before.Median, r.After.Median, r.Scaling, r.ScalingOf, memory, r.Disturbed)
	}
	b.WriteString("\n")
	return b.String()
}
