// Command steps times whole training steps against the same step in PyTorch, by
// turns. Of HRM that is forward, q target, backward and both optimizers, of the
// looped language model forward, backward, clipping and AdamW:
//
//	go run ./bench/steps [-configs A,B,C,C4,gpt2,bytes,gpt2-short] [-precisions fp32,bf16] [-kernels auto] [-rounds 5] [-out FILE] [-json FILE]
//
// A round is: ceiling probe, our step, ceiling probe, the peer's step, and our
// step on one thread between two probes on one thread. Figures are minimum /
// median / maximum over rounds, ratios are taken within a round. The peer gets
// the best of what it can do: threads, instruction sets, cast of weights,
// attention, and for bf16 also float32, tried before the rounds.
package main

import (
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
		if r.python, err = peer.Beside(&machine); err != nil {
			return err
		}
		if r.python != nil {
			defer r.python.Close()
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
					doc.Tried = append(doc.Tried, tried{m.kernel, m.size, best})
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
