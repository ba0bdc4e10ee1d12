package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"deeploop/bench"
	"deeploop/bench/peer"
)

// choice is a way to run the peer.
type choice struct {
	Threads    int    `json:"threads"`
	Capability string `json:"capability"` // ATEN_CPU_CAPABILITY
	Wait       string `json:"wait"`       // OMP_WAIT_POLICY
	Memory     string `json:"memory"`     // see peer.Environment
	Precision  string `json:"precision"`
	Cast       string `json:"cast"`
	Attention  string `json:"attention"`

	// of the language model
	Optimizer string `json:"optimizer,omitempty"`
	Table     string `json:"table,omitempty"`

	Seconds float64 `json:"seconds"` // when it was tried
}

func (c choice) String() string {
	s := fmt.Sprintf("%s x%d %s %s %s cast/%s %s", c.Precision, c.Threads, c.Capability, c.Wait, c.Memory, c.Cast, c.Attention)
	if c.Optimizer != "" {
		s += fmt.Sprintf(" %s %s table", c.Optimizer, c.Table)
	}
	return s
}

func (c choice) environment() peer.Environment {
	return peer.Environment{Capability: c.Capability, Wait: c.Wait, Memory: c.Memory, Threads: c.Threads}
}

func (c choice) open(size bench.Config) bench.Request {
	return bench.Request{
		Op: "open", Config: &size, Precision: c.Precision, Cast: c.Cast, Attention: c.Attention, Optimizer: c.Optimizer, Table: c.Table,
	}
}

// usual is where the search begins.
func (r *runner) usual(kernel string, c bench.Config, precision string) choice {
	x := choice{
		Threads: r.threads, Capability: peer.Capabilities(kernel)[0], Wait: "passive", Memory: "default",
		Precision: precision, Cast: "step", Attention: "bmm",
	}
	if c.Model == bench.LM { // its tensors of up to 150 MB make fresh pages dear
		x.Memory, x.Table, x.Optimizer = "keep", "sparse", "single"
	}
	return x
}

// options are changes to try: of each list the best is kept for the next.
func (r *runner) options(kernel string, c bench.Config, precision string) [][]func(*choice) {
	var all [][]func(*choice)
	add := func(changes ...func(*choice)) { all = append(all, changes) }
	if r.threads > 1 {
		add(func(x *choice) { x.Wait = "active" }, func(x *choice) { x.Threads = 1 })
	}
	for _, other := range peer.Capabilities(kernel)[1:] {
		add(func(x *choice) { x.Capability = other })
	}
	if precision == "bf16" {
		add(func(x *choice) { x.Cast = "call" })
	}
	if c.Model == bench.HRM {
		add(func(x *choice) { x.Attention = "einsum" })
		return all
	}
	if precision == "bf16" {
		add(func(x *choice) { x.Cast = "autocast" })
	}
	if c.SeqLen > 256 { // else there is but one block
		add(func(x *choice) { x.Attention = "blocks" })
	}
	add(func(x *choice) { x.Table = "dense" })
	add(func(x *choice) { x.Optimizer = "foreach" })
	add(func(x *choice) { x.Memory = "default" })
	return all
}

// choose returns the fastest options of the peer; as bf16's opponent float32
// counts too. Sizes of one model share a choice, made on the first.
func (r *runner) choose(kernel string, c bench.Config, precision string) (choice, error) {
	best, err := r.chosenFor(kernel, c, precision)
	if err != nil || precision != "bf16" {
		return best, err
	}
	if best.Seconds == 0 { // oneDNN has no bf16 below AVX-512
		return r.chosenFor(kernel, c, "fp32")
	}
	other, ok := r.chosen[modelOf(kernel, c, "fp32")]
	if !ok { // its usual best tells whether it is near
		other = r.usual(kernel, c, "fp32")
		if err := r.try(kernel, c, &other); err != nil {
			return best, err
		}
		if other.Seconds < best.Seconds {
			other, err = r.chosenFor(kernel, c, "fp32")
		}
	}
	if err == nil && other.Seconds < best.Seconds {
		best = other
	}
	return best, err
}

func (r *runner) chosenFor(kernel string, c bench.Config, precision string) (choice, error) {
	at := modelOf(kernel, c, precision)
	best, ok := r.chosen[at]
	if ok {
		return best, nil
	}
	best, err := r.fastest(kernel, c, precision)
	if err == nil {
		r.chosen[at] = best
	}
	return best, err
}

// model is what a choice depends on.
type model struct {
	kernel, precision, size string
}

func modelOf(kernel string, c bench.Config, precision string) model {
	if c.Like != "" {
		return model{kernel, precision, c.Like}
	}
	return model{kernel, precision, c.Name}
}

// recall takes choices from the JSON file of an earlier run.
func (r *runner) recall(path string) error {
	r.chosen = map[model]choice{}
	if path == "" {
		return nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, t := range d.Tried {
		r.chosen[model{t.Kernel, t.Best.Precision, t.Size}] = t.Best
	}
	return nil
}

// fastest tries the options one after the other, each with the best of those
// before it.
func (r *runner) fastest(kernel string, c bench.Config, precision string) (choice, error) {
	best := r.usual(kernel, c, precision)
	steps := append([][]func(*choice){{func(*choice) {}}}, r.options(kernel, c, precision)...)
	for _, changes := range steps {
		base := best
		for _, change := range changes {
			x := base
			change(&x)
			if err := r.try(kernel, c, &x); err != nil {
				fmt.Fprintf(r.log, "  %s %s cannot: %v\n", c.Name, x, err)
				continue
			}
			if best.Seconds == 0 || x.Seconds < best.Seconds {
				best = x
			}
		}
	}
	if best.Seconds == 0 && precision == "fp32" {
		return best, fmt.Errorf("the peer runs in none of its ways")
	}
	return best, nil
}

func (r *runner) try(kernel string, c bench.Config, x *choice) error {
	p, err := r.python.Start(kernel, x.environment())
	if err != nil {
		return err
	}
	defer p.Close()
	if err := first(p, x.open(c)); err != nil {
		return err
	}
	_, err = bench.Quiet([]*bench.Process{p}, func() error {
		reply, err := p.Do(bench.Request{Op: "step", Times: 1})
		if err == nil {
			x.Seconds = slices.Min(reply.Seconds)
		}
		return err
	})
	fmt.Fprintf(r.log, "  tried %s %s: %.3f s\n", c.Name, x, x.Seconds)
	return err
}
