// Package ours is this project's side of the comparison: a process that
// answers the requests of package bench.
package ours

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"deeploop/bench"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/runlog"
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
	job     job
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
		return bench.Reply{}, s.export(r.Out)
	case "memory":
		return bench.Reply{PeakRSS: int64(runlog.PeakBytes())}, nil
	}
	return bench.Reply{}, fmt.Errorf("no op %q", r.Op)
}

func precision(name string) (kernel.DType, error) {
	for _, t := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
		if t.String() == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("precision is %q, expected fp32 or bf16", name)
}

// job is a learner with a batch.
type job interface {
	// Step makes one training step and returns its loss.
	Step() (float64, error)
	Close()
}

func (s *server) open(r bench.Request) error {
	if s.job != nil {
		s.job.Close()
		s.job = nil
	}
	act, err := precision(r.Precision)
	if err != nil {
		return err
	}
	if r.Config.Model == bench.LM {
		s.job, err = openLM(*r.Config, s.backend, act)
	} else {
		s.job, err = openHRM(*r.Config, s.backend, act)
	}
	return err
}

// TrainStepFlops are the operations of products and attention of one step.
func TrainStepFlops(c bench.Config) float64 {
	if c.Model == bench.LM {
		return LMConfig(c).TrainStepFlops()
	}
	return HRMConfig(c).Arch.TrainStepFlops(c.BatchSize)
}

func (s *server) step(times int) (bench.Reply, error) {
	var reply bench.Reply
	if s.job == nil {
		return reply, errors.New("step before open")
	}
	for range times {
		start := time.Now()
		loss, err := s.job.Step()
		if err != nil {
			return reply, err
		}
		reply.Seconds = append(reply.Seconds, time.Since(start).Seconds())
		reply.Loss = loss
	}
	return reply, nil
}

// export writes weights and batch of HRM's learner.
func (s *server) export(path string) error {
	j, ok := s.job.(*hrmJob)
	if !ok {
		return errors.New("export needs an open HRM")
	}
	return Write(path, Weights(j.learner.Model), &j.rows)
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
