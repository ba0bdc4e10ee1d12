package profile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report says where the time of a unit of work went. All figures are means per
// unit; shares are of its time, from 0 to 1. Ceilings and what depends on them
// are 0 where the backend has no probes.
type Report struct {
	Unit    string  `json:"unit"`  // "training step"
	Units   int     `json:"units"` // how many were measured
	Seconds float64 `json:"seconds"`

	Kernel    string `json:"kernel"`
	Precision string `json:"precision"`
	Threads   int    `json:"threads"`

	GFLOPS        float64 `json:"gflops"`         // products and attention over the whole time
	CeilingGFLOPS float64 `json:"ceiling_gflops"` // products at best
	CopyGBs       float64 `json:"copy_gb_s"`      // copies at best
	CeilingShare  float64 `json:"ceiling_share"`

	Ops    []Line `json:"ops"`
	Groups []Line `json:"groups"`
	// Rest is what no kernel took: dispatch of the graph, the Go side of ops,
	// batches and halting.
	RestSeconds float64 `json:"rest_seconds"`
	RestShare   float64 `json:"rest_share"`
	// HeapBytes is what was allocated on the heap.
	HeapBytes float64 `json:"heap_bytes"`
}

// Line is one op, or a group of ops.
type Line struct {
	Op      string  `json:"op"`
	Group   string  `json:"group"`
	N       int     `json:"n,omitempty"` // matrix [N, K] of a product
	K       int     `json:"k,omitempty"`
	Calls   float64 `json:"calls"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"`
	GFLOPS  float64 `json:"gflops"`
	GBs     float64 `json:"gb_s"`
	// CeilingShare compares products and attention with products at best, and
	// the others with copies.
	CeilingShare float64 `json:"ceiling_share"`
}

// Report sums up the record of units called unit, against the ceilings of p,
// which probes the backend that was recorded.
func (r *Record) Report(unit string, p *Probe) Report {
	flops, bytes := p.Ceilings()
	rep := Report{
		Unit: unit, Units: r.units, Kernel: p.backend.Name(), Precision: p.act.String(), Threads: p.backend.Threads(),
		CeilingGFLOPS: flops / 1e9, CopyGBs: bytes / 1e9, Ops: []Line{}, Groups: []Line{},
	}
	if r.units == 0 {
		return rep
	}
	n := float64(r.units)
	rep.Seconds, rep.HeapBytes = r.seconds/n, r.heaped/n
	line := func(o Op, c Calls) Line {
		l := Line{
			Op: o.Name, Group: o.Group.String(), N: o.N, K: o.K, Calls: float64(c.Calls) / n, Seconds: c.Seconds / n,
			Share: over(c.Seconds, r.seconds), GFLOPS: over(c.Flops, c.Seconds) / 1e9, GBs: over(c.Bytes, c.Seconds) / 1e9,
		}
		if l.CeilingShare = over(l.GBs, rep.CopyGBs); o.Group != Other {
			l.CeilingShare = over(l.GFLOPS, rep.CeilingGFLOPS)
		}
		return l
	}
	var all Calls
	var sums [Other + 1]Calls
	for o, c := range r.ops {
		rep.Ops = append(rep.Ops, line(o, c))
		sums[o.Group].add(c)
		all.add(c)
	}
	slices.SortFunc(rep.Ops, func(a, b Line) int {
		return cmp.Or(-cmp.Compare(a.Seconds, b.Seconds), cmp.Compare(a.Op, b.Op), cmp.Compare(a.N, b.N), cmp.Compare(a.K, b.K))
	})
	for g, c := range sums {
		rep.Groups = append(rep.Groups, line(Op{Name: Group(g).String(), Group: Group(g)}, c))
	}
	rep.RestSeconds = rep.Seconds - all.Seconds/n
	rep.RestShare = over(rep.RestSeconds, rep.Seconds)
	rep.GFLOPS = over(all.Flops, r.seconds) / 1e9
	rep.CeilingShare = over(rep.GFLOPS, rep.CeilingGFLOPS)
	return rep
}

func (c *Calls) add(o Calls) {
	c.Calls += o.Calls
	c.Seconds += o.Seconds
	c.Flops += o.Flops
	c.Bytes += o.Bytes
}

// over is a/b, 0 where b is 0.
func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Write prints the report as a table for people.
func (r Report) Write(w io.Writer) error {
	fmt.Fprintf(w, "profile: mean of %s, kernel %s, %s, %s\n", count(r.Units, r.Unit), r.Kernel, r.Precision, count(r.Threads, "thread"))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "calls\tms\tshare\tGFLOP/s\tGB/s\tof ceiling\t\top")
	row := func(l Line, name string) {
		fmt.Fprintf(tw, "%.4g\t%.3f\t%s\t%s\t%s\t%s\t\t%s\n",
			l.Calls, 1e3*l.Seconds, percent(l.Share), figure(l.GFLOPS), figure(l.GBs), percent(l.CeilingShare), name)
	}
	for _, l := range r.Ops {
		row(l, l.name())
	}
	fmt.Fprintln(tw, "\t\t\t\t\t\t\t")
	for _, l := range r.Groups {
		row(l, l.Op)
	}
	fmt.Fprintf(tw, "\t%.3f\t%s\t\t\t\t\trest: graph and Go\n", 1e3*r.RestSeconds, percent(r.RestShare))
	fmt.Fprintf(tw, "\t%.3f\t%s\t%s\t\t%s\t\t%s\n", 1e3*r.Seconds, percent(1), figure(r.GFLOPS), percent(r.CeilingShare), r.Unit)
	if err := tw.Flush(); err != nil {
		return err
	}
	if r.CeilingGFLOPS > 0 {
		fmt.Fprintf(w, "ceilings here: products %s GFLOP/s", figure(r.CeilingGFLOPS))
		if r.CopyGBs > 0 {
			fmt.Fprintf(w, ", copies %s GB/s (more than that comes from caches)", figure(r.CopyGBs))
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintf(w, "heap: %.1f kB allocated in each %s\n", r.HeapBytes/1e3, r.Unit)
	return err
}

// WriteJSON prints the report as a JSON document.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (l Line) name() string {
	if l.N == 0 {
		return l.Op
	}
	return fmt.Sprintf("%s %dx%d", l.Op, l.N, l.K)
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func percent(share float64) string {
	if share == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%%", 100*share)
}

// figure has three digits or more.
func figure(v float64) string {
	if v == 0 {
		return ""
	}
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return strings.TrimSpace(fmt.Sprintf("%.3g", v))
}
