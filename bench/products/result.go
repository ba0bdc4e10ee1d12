package main

import (
	"fmt"
	"strings"

	"deeploop/bench"
	"deeploop/internal/profile"
)

// product is one shape in one direction.
type product struct {
	Shape       shape          `json:"shape"`
	Kind        string         `json:"kind"`
	Seconds     profile.Spread `json:"seconds"`
	PeerSeconds profile.Spread `json:"peer_seconds"`
	Ratio       profile.Spread `json:"times_faster"`
	Share       profile.Spread `json:"ceiling_share"`
	GFLOPS      float64        `json:"gflops"` // of the median
	PeerGFLOPS  float64        `json:"peer_gflops"`
}

// group is all products of one precision and thread count.
type group struct {
	Precision string    `json:"precision"`
	Threads   int       `json:"threads"`
	PeerFails string    `json:"peer_fails,omitempty"`
	Products  []product `json:"products"`
	Summary   []summary `json:"summary"`
}

// summary is what the targets speak of, for one kind of product. Shares are
// the least of the shapes with M ≥ 2048, up to and beyond N and K of 1024.
type summary struct {
	Kind       string  `json:"kind"`
	Mean       float64 `json:"geometric_mean"` // of times faster
	Worst      float64 `json:"worst"`
	WorstAt    shape   `json:"worst_at"`
	Share      float64 `json:"least_share"`
	ShareAt    shape   `json:"least_share_at"`
	WideShare  float64 `json:"least_share_wide"`
	WideAt     shape   `json:"least_share_wide_at"`
	MeanShare  float64 `json:"mean_share"` // geometric, of both
	MeanGFLOPS float64 `json:"mean_gflops"`
}

func (g *group) summarise() {
	for _, kind := range kinds {
		s := summary{Kind: kind}
		var ratios, shares, rates []float64
		least := func(v float64, at shape, to *float64, toAt *shape) {
			if *to == 0 || v < *to {
				*to, *toAt = v, at
			}
		}
		for _, p := range g.Products {
			if p.Kind != kind {
				continue
			}
			rates = append(rates, p.GFLOPS)
			if p.Ratio.N > 0 {
				ratios = append(ratios, p.Ratio.Median)
				least(p.Ratio.Median, p.Shape, &s.Worst, &s.WorstAt)
			}
			if p.Share.N == 0 || !p.Shape.large() {
				continue
			}
			shares = append(shares, p.Share.Median)
			if p.Shape.wide() {
				least(p.Share.Median, p.Shape, &s.WideShare, &s.WideAt)
			} else {
				least(p.Share.Median, p.Shape, &s.Share, &s.ShareAt)
			}
		}
		s.Mean, s.MeanShare, s.MeanGFLOPS = bench.GeometricMean(ratios), bench.GeometricMean(shares), bench.GeometricMean(rates)
		g.Summary = append(g.Summary, s)
	}
}

func (s shape) String() string { return fmt.Sprintf("%d %d %d", s.M, s.N, s.K) }

func (g group) lines() string {
	var b strings.Builder
	for _, s := range g.Summary {
		fmt.Fprintf(&b, "| %s | %d | %s | %.2f | %.2f at %v | %.2f at %v | %.2f at %v | %.2f | %.0f |\n",
			g.Precision, g.Threads, s.Kind, s.Mean, s.Worst, s.WorstAt, s.Share, s.ShareAt, s.WideShare, s.WideAt, s.MeanShare, s.MeanGFLOPS)
	}
	return b.String()
}

// document is what the JSON file holds.
type document struct {
	Machine bench.Machine `json:"machine"`
	Groups  []group       `json:"groups"`
}

func (d document) markdown() string {
	var b strings.Builder
	b.WriteString(d.Machine.Heading("Matrix products"))
	b.WriteString("Times faster than PyTorch (oneDNN in bf16, OpenBLAS in fp32) over all shapes; shares of the ceiling of shapes with M of 2048 and more, N and K up to 1024 and beyond. Shapes are M N K.\n\n")
	b.WriteString("| precision | threads | product | geometric mean | worst | least share | least share beyond | mean share | mean GFLOP/s |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, g := range d.Groups {
		b.WriteString(g.lines())
	}
	for _, g := range d.Groups {
		if g.PeerFails != "" {
			fmt.Fprintf(&b, "\n%s on %d threads has no peer: %s\n", g.Precision, g.Threads, g.PeerFails)
		}
	}
	b.WriteString("\nEach shape, on the most threads: GFLOP/s of ours, of the peer's, times faster (minimum / median / maximum), share of the ceiling.\n\n")
	b.WriteString("| M N K | precision | forward | dX | dW |\n| --- | --- | --- | --- | --- |\n")
	for _, g := range d.Groups {
		if g.Threads != d.Groups[0].Threads {
			continue
		}
		for i := 0; i+len(kinds) <= len(g.Products); i += len(kinds) {
			fmt.Fprintf(&b, "| %v | %s |", g.Products[i].Shape, g.Precision)
			for _, p := range g.Products[i : i+len(kinds)] {
				fmt.Fprintf(&b, " %.0f, %.0f, %s, %.2f |", p.GFLOPS, p.PeerGFLOPS, p.Ratio.Format("%.2f"), p.Share.Median)
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	return b.String()
}
