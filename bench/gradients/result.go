package main

import (
	"fmt"
	"strings"

	"deeploop/bench"
	"deeploop/internal/profile"
)

// tensor holds the relative errors of one tensor's gradient.
type tensor struct {
	Name  string  `json:"name"`
	Ours  float64 `json:"ours"`       // our bf16 against our fp32
	Peer  float64 `json:"peer"`       // the peer's bf16 against its fp32
	Ratio float64 `json:"ratio"`      // of the two
	Agree float64 `json:"fp32_apart"` // our fp32 against the peer's fp32
}

// result is one model. Loss is [ours, peer][fp32, bf16].
type result struct {
	Config  bench.Config  `json:"config"`
	Steps   int           `json:"training_steps"`
	Loss    [2][2]float64 `json:"loss"`
	Tensors []tensor      `json:"tensors"`
}

func (r result) line() string {
	pick := func(get func(tensor) float64) profile.Spread {
		var v []float64
		for _, t := range r.Tensors {
			v = append(v, get(t))
		}
		return profile.SpreadOf(v)
	}
	ratio := pick(func(t tensor) float64 { return t.Ratio })
	worst := r.Tensors[0]
	for _, t := range r.Tensors {
		if t.Ratio > worst.Ratio {
			worst = t
		}
	}
	percent := func(s profile.Spread) string {
		return profile.Spread{Min: 100 * s.Min, Median: 100 * s.Median, Max: 100 * s.Max, N: s.N}.Format("%.2f")
	}
	return fmt.Sprintf("| %s | %d | %d | %s | %s | %s | %s (%.4f, %.4f) | %.1e |\n", r.Config.Name, r.Steps, len(r.Tensors),
		percent(pick(func(t tensor) float64 { return t.Ours })), percent(pick(func(t tensor) float64 { return t.Peer })),
		ratio.Format("%.2f"), worst.Name, worst.Ours, worst.Peer, pick(func(t tensor) float64 { return t.Agree }).Max)
}

// document is what the JSON file holds.
type document struct {
	Machine bench.Machine `json:"machine"`
	Results []result      `json:"results"`
}

func (d document) markdown() string {
	var b strings.Builder
	b.WriteString(d.Machine.Heading("Gradients in bf16"))
	b.WriteString("Error of a tensor's gradient in bf16 against fp32, same weights and batch; minimum / median / maximum over tensors.\n\n")
	b.WriteString("| size | training steps | tensors | ours, % | PyTorch's, % | ours over PyTorch's | worst (ours, PyTorch's) | fp32 of both apart, most |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range d.Results {
		b.WriteString(r.line())
	}
	b.WriteString("\n")
	return b.String()
}
