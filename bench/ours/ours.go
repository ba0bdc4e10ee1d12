// Package ours is this project's side of the comparison: a process that
// answers the requests of package bench.
package ours

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"deeploop/bench"
	"deeploop/hrm"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick"
)

// Command is the first argument of a program that is to serve.
const Command = "serve"

// Start starts this very program again as a server.
func Start(kernelName string, threads int) (*bench.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("ours %s x%d", kernelName, threads)
	return bench.Start(name, nil, self, Command, "-kernel", kernelName, "-threads", fmt.Sprint(threads))
}

// Main serves and exits when the program was started by Start; a program that
// measures calls it first.
func Main() {
	if len(os.Args) < 2 || os.Args[1] != Command {
		return
	}
	if err := serve(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(args []string) error {
	flags := flag.NewFlagSet(Command, flag.ExitOnError)
	name := flags.String("kernel", pick.Auto, "kernel")
	threads := flags.Int("threads", 0, "threads")
	if err := flags.Parse(args); err != nil {
		return err
	}
	choice, err := pick.Open(pick.Request{Kernel: *name, Threads: *threads})
	if err != nil {
		return err
	}
	s := server{backend: choice.Backend}
	defer s.backend.Close()
	hello := bench.Reply{Kernel: s.backend.Name(), Threads: s.backend.Threads()}
	return bench.Serve(os.Stdin, os.Stdout, hello, s.answer)
}

type server struct {
	backend kernel.Backend
	learner *hrm.Learner
	rows    hrm.Rows
	product *product
}

func (s *server) answer(r bench.Request) (bench.Reply, error) {
	switch r.Op {
	case "open":
		return bench.Reply{}, s.open(r)
	case "step":
		return s.step(r.Times)
	case "product":
		return s.multiply(r)
	case "probe":
		return s.probe(r)
	case "gradients":
		return s.gradients(r)
	case "export":
		return bench.Reply{}, Write(r.Out, Weights(s.learner.Model), &s.rows)
	case "memory":
		return bench.Reply{PeakRSS: peakRSS()}, nil
	}
	return bench.Reply{}, fmt.Errorf("no op %q", r.Op)
}

// peakRSS is the most memory this process has had resident, in bytes, where
// the system tells (Linux).
func peakRSS() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range bytes.Lines(status) {
		var kB int64
		if n, _ := fmt.Sscanf(string(line), "VmHWM: %d kB", &kB); n == 1 {
			return kB << 10
		}
	}
	return 0
}

func precision(name string) (kernel.DType, error) {
	for _, t := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
		if t.String() == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("precision is %q, expected fp32 or bf16", name)
}

// TrainConfig is the published run's configuration at another size.
func TrainConfig(c bench.Config) hrm.TrainConfig {
	t := hrm.PresetHRMv1()
	a := &t.Arch
	a.HiddenSize, a.PuzzleEmbDim, a.NumHeads = c.HiddenSize, c.HiddenSize, c.NumHeads
	a.HLayers, a.LLayers, a.HCycles, a.LCycles = c.HLayers, c.LLayers, c.HCycles, c.LCycles
	a.SeqLen, a.VocabSize, a.NumPuzzleIdentifiers = c.SeqLen, 12, 1000
	t.GlobalBatchSize = c.BatchSize
	return t
}

// open makes a learner and a batch of random grids in which every tenth label
// is not counted, as the peer's.
func (s *server) open(r bench.Request) error {
	if s.learner != nil {
		s.learner.Segment.Close()
		s.learner = nil
	}
	act, err := precision(r.Precision)
	if err != nil {
		return err
	}
	c := TrainConfig(*r.Config)
	m, err := hrm.NewModel(c.Arch, act, 1)
	if err != nil {
		return err
	}
	s.rows = randomRows(c)
	s.learner, err = hrm.NewLearner(m, s.backend, c, 100000)
	return err
}

func randomRows(c hrm.TrainConfig) hrm.Rows {
	draw := rand.New(rand.NewPCG(1, 1))
	rows := hrm.NewRows(c.GlobalBatchSize, c.Arch.SeqLen)
	for i := range rows.Inputs {
		rows.Inputs[i], rows.Labels[i] = draw.Int32N(12), draw.Int32N(12)
		if i%10 == 0 {
			rows.Labels[i] = -100
		}
	}
	for i := range rows.IDs {
		rows.IDs[i] = draw.Int32N(int32(c.Arch.NumPuzzleIdentifiers))
	}
	return rows
}

func (s *server) step(times int) (bench.Reply, error) {
	var reply bench.Reply
	if s.learner == nil {
		return reply, errors.New("step before open")
	}
	for range times {
		start := time.Now()
		m, err := s.learner.Step(s.rows)
		if err != nil {
			return reply, err
		}
		reply.Seconds = append(reply.Seconds, time.Since(start).Seconds())
		reply.Loss = m.Loss()
	}
	return reply, nil
}

// probe measures the ceiling of products for about r.Seconds.
func (s *server) probe(r bench.Request) (bench.Reply, error) {
	limits, ok := s.backend.(kernel.Limits)
	if !ok {
		return bench.Reply{}, nil
	}
	act, err := precision(r.Precision)
	if err != nil {
		return bench.Reply{}, err
	}
	var flop, seconds float64
	for rounds := 1000; seconds < r.Seconds; {
		start := time.Now()
		f := limits.ProbeProducts(act, rounds)
		took := time.Since(start).Seconds()
		if took < 0.005 && seconds == 0 { // too short to count
			rounds *= 4
			continue
		}
		flop += f
		seconds += took
	}
	return bench.Reply{GFLOPS: flop / seconds / 1e9}, nil
}
