// Command steps times whole training steps (forward, q target, backward, both
// optimizers) against the same step in PyTorch, by turns:
//
//	go run ./bench/steps [-configs A,B,C,C4] [-precisions fp32,bf16] [-kernels auto] [-rounds 5] [-out FILE] [-json FILE]
//
// A round is: ceiling probe, our step, ceiling probe, the peer's step, and our
// step on one thread between two probes on one thread. Figures are minimum /
// median / maximum over rounds, ratios are taken within a round. The peer gets
// the best of what it can do: threads, instruction sets, cast of weights,
// attention, and for bf16 also float32, tried before the rounds.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"deeploop/bench"
	"deeploop/bench/ours"
	"deeploop/bench/peer"
	"deeploop/internal/kernel/pick"
)

func main() {
	ours.Main()
	var r runner
	configs := flag.String("configs", "A,B,C,C4", "sizes, see bench.Configs")
	precisions := flag.String("precisions", "fp32,bf16", "bf16, fp32 or both; C4 runs in fp32 only when that is all that is asked")
	kernels := flag.String("kernels", "", "kernels of ours, each against the peer limited to its instructions; default the fastest here")
	flag.IntVar(&r.rounds, "rounds", 5, "rounds of each size; large sizes take fewer")
	flag.IntVar(&r.threads, "threads", runtime.GOMAXPROCS(0), "threads of ours; the peer also tries one")
	flag.BoolVar(&r.alone, "alone", false, "leave the peer out")
	out := flag.String("out", "", "file to append the table to (default: standard output)")
	choices := flag.String("choices", "", "JSON file of an earlier run: take the peer's options from it, where it has them")
	js := flag.String("json", "", "file to write all figures to")
	flag.Parse()
	if err := r.recall(*choices); err != nil {
		fmt.Fprintln(os.Stderr, "steps:", err)
		os.Exit(1)
	}
	if err := r.run(strings.Split(*configs, ","), strings.Split(*precisions, ","), *kernels, *out, *js); err != nil {
		fmt.Fprintln(os.Stderr, "steps:", err)
		os.Exit(1)
	}
}

type runner struct {
	rounds, threads int
	alone           bool
	python          *peer.Python // nil: nothing to compare with
	chosen          map[model]choice
	log             io.Writer
}

func (r *runner) run(configs, precisions []string, kernels, out, js string) error {
	if kernels == "" {
		have := pick.Available()
		kernels = have[len(have)-1]
	}
	r.log = os.Stderr
	machine := bench.ThisMachine()
	machine.Kernel = kernels
	if r.alone {
		machine.Peer = "left out"
	} else {
		var err error
		if r.python, err = peer.Find(); err != nil {
			if !errors.Is(err, peer.ErrNone) {
				return err
			}
			machine.Peer = "skipped, " + err.Error()
			fmt.Fprintln(r.log, machine.Peer)
		} else {
			defer r.python.Close()
			machine.Peer = "PyTorch " + r.python.Version
		}
	}
	doc := document{Machine: machine}
	for _, k := range strings.Split(kernels, ",") {
		for _, name := range configs {
			size, err := bench.Size(name)
			if err != nil {
				return err
			}
			for _, p := range precisions {
				if p == "fp32" && name == "C4" && len(precisions) > 1 {
					continue // minutes, and no other size is missing there
				}
				res, err := r.measure(k, size, p)
				if err != nil {
					return err
				}
				fmt.Fprintln(r.log, res.line())
				doc.Steps = append(doc.Steps, res)
				doc.Tried = doc.Tried[:0]
				for m, best := range r.chosen {
					doc.Tried = append(doc.Tried, tried{m.kernel, m.hidden, best})
				}
				if err := bench.WriteJSON(js, doc); err != nil { // after each, so that an interrupted run keeps what it has
					return err
				}
			}
		}
	}
	return bench.Append(out, doc.markdown())
}

// sides are the processes of one comparison.
type sides struct {
	many, one, peer *bench.Process // peer nil: none
}

func (s sides) all() []*bench.Process {
	return slices.DeleteFunc([]*bench.Process{s.many, s.one, s.peer}, func(p *bench.Process) bool { return p == nil })
}

func (r *runner) measure(kernel string, c bench.Config, precision string) (res result, err error) {
	res = result{Config: c, Kernel: kernel, Precision: precision, Threads: r.threads}
	var s sides
	defer func() {
		for _, p := range s.all() {
			p.Close()
		}
	}()
	open := bench.Request{Op: "open", Config: &c, Precision: precision}
	start := func(threads int) (*bench.Process, error) {
		p, err := ours.Start(kernel, threads)
		if err != nil {
			return nil, err
		}
		return p, first(p, open)
	}
	if s.many, err = start(r.threads); err != nil {
		return res, err
	}
	if s.one, err = start(1); err != nil {
		return res, err
	}
	if r.python != nil {
		best, err := r.choose(kernel, c, precision)
		if err != nil {
			return res, err
		}
		res.Choice = &best
		if s.peer, err = r.python.Start(kernel, best.environment()); err != nil {
			return res, err
		}
		if err := first(s.peer, best.open(c)); err != nil {
			return res, err
		}
	}
	if err := r.alternate(s, &res); err != nil {
		return res, err
	}
	m, err := s.many.Do(bench.Request{Op: "memory"})
	if err != nil {
		return res, err
	}
	res.RSS = m.PeakRSS
	if s.peer != nil {
		if m, err = s.peer.Do(bench.Request{Op: "memory"}); err != nil {
			return res, err
		}
		res.PeerRSS = m.PeakRSS
	}
	res.summarise()
	return res, nil
}

// first opens a model and makes the first step, which nobody counts.
func first(p *bench.Process, open bench.Request) error {
	if _, err := p.Do(open); err != nil {
		return err
	}
	_, err := p.Do(bench.Request{Op: "step", Times: 1})
	return err
}

// A round lasts at least roundTime on each side, and a comparison stops after
// enoughTime once it has three rounds.
const (
	roundTime  = 0.3
	enoughTime = 60 * time.Second
	probeTime  = 0.06
	settle     = 150 * time.Millisecond // lets the other side's waiting threads go to sleep; 30 ms were too few for OpenBLAS's
)

func (r *runner) alternate(s sides, res *result) error {
	began := time.Now()
	for i := range r.rounds {
		if i >= 3 && time.Since(began) > enoughTime {
			break
		}
		if err := sample(s, s.many, res.Precision, &res.many, &res.Disturbed); err != nil {
			return err
		}
		if s.peer != nil {
			quiet, err := bench.Quiet(s.all(), func() error {
				t, err := steps(s.peer)
				res.peer.put(i, t)
				return err
			})
			if err != nil {
				return err
			}
			if !quiet {
				res.Disturbed++
			}
		}
		if err := sample(s, s.one, res.Precision, &res.one, &res.Disturbed); err != nil {
			return err
		}
	}
	return nil
}

// sample takes one of our figures between two probes of the ceiling.
func sample(s sides, p *bench.Process, precision string, to *samples, disturbed *int) error {
	i := len(to.seconds)
	probe := bench.Request{Op: "probe", Precision: precision, Seconds: probeTime}
	quiet, err := bench.Quiet(s.all(), func() error {
		time.Sleep(settle)
		before, err := p.Do(probe)
		if err != nil {
			return err
		}
		t, err := steps(p)
		if err != nil {
			return err
		}
		after, err := p.Do(probe)
		to.put(i, t)
		to.ceiling(i, before.GFLOPS, after.GFLOPS)
		return err
	})
	if !quiet {
		*disturbed++
	}
	return err
}

// steps times enough steps to fill roundTime and returns seconds per step.
func steps(p *bench.Process) (float64, error) {
	time.Sleep(settle)
	var sum float64
	n := 0
	for sum < roundTime {
		got, err := p.Do(bench.Request{Op: "step", Times: 1})
		if err != nil {
			return 0, err
		}
		sum += got.Seconds[0]
		n++
	}
	return sum / float64(n), nil
}

// choice is a way to run the peer.
type choice struct {
	Threads    int     `json:"threads"`
	Capability string  `json:"capability"` // ATEN_CPU_CAPABILITY
	Wait       string  `json:"wait"`       // OMP_WAIT_POLICY
	Precision  string  `json:"precision"`
	Cast       string  `json:"cast"`
	Attention  string  `json:"attention"`
	Seconds    float64 `json:"seconds"` // when it was tried
}

func (c choice) String() string {
	return fmt.Sprintf("%s x%d %s %s cast/%s %s", c.Precision, c.Threads, c.Capability, c.Wait, c.Cast, c.Attention)
}

func (c choice) environment() peer.Environment {
	return peer.Environment{Capability: c.Capability, Wait: c.Wait, Threads: c.Threads}
}

func (c choice) open(size bench.Config) bench.Request {
	return bench.Request{Op: "open", Config: &size, Precision: c.Precision, Cast: c.Cast, Attention: c.Attention}
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
	other, ok := r.chosen[model{kernel, "fp32", c.HiddenSize}]
	if !ok { // its usual best tells whether it is near
		other = choice{Threads: r.threads, Capability: peer.Capabilities(kernel)[0], Wait: "passive", Precision: "fp32", Cast: "step", Attention: "bmm"}
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
	at := model{kernel, precision, c.HiddenSize}
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
	kernel, precision string
	hidden            int
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
		r.chosen[model{t.Kernel, t.Best.Precision, t.Hidden}] = t.Best
	}
	return nil
}

// fastest tries the options one after the other, each with the best of those
// before it.
func (r *runner) fastest(kernel string, c bench.Config, precision string) (choice, error) {
	caps := peer.Capabilities(kernel)
	best := choice{Threads: r.threads, Capability: caps[0], Wait: "active", Precision: precision, Cast: "step", Attention: "bmm"}
	steps := [][]func(*choice){{func(*choice) {}}}
	if r.threads > 1 {
		steps = append(steps, []func(*choice){
			func(x *choice) { x.Wait = "passive" },
			func(x *choice) { x.Threads = 1 },
		})
	}
	for _, other := range caps[1:] {
		steps = append(steps, []func(*choice){func(x *choice) { x.Capability = other }})
	}
	if precision == "bf16" {
		steps = append(steps, []func(*choice){func(x *choice) { x.Cast = "call" }})
	}
	steps = append(steps, []func(*choice){func(x *choice) { x.Attention = "einsum" }})
	for _, options := range steps {
		base := best
		for _, change := range options {
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
