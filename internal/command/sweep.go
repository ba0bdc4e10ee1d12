package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/curves"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
	"deeploop/internal/wording"
)

// sweepOptions are the flags of sweep.
type sweepOptions struct {
	program      string
	minutes      float64
	dryRun, json bool
	tensorboard  string
	plot         string
	force        bool

	each     time.Duration // a run is expected to take
	deadline time.Time     // zero without --minutes
	self     string        // the program's own file
}

// NewSweepCmd makes the command sweep of a program. example is a file of
// settings for its help.
func NewSweepCmd(s *cli.Streams, program, example string) *cobra.Command {
	o := sweepOptions{program: program}
	cmd := &cobra.Command{
		Use:   "sweep FILE.yaml",
		Short: "Train a list of settings with several seeds and compare them",
		Long: `Train every setting of a file with every seed, and print mean and standard
deviation of its metrics.

Each is an ordinary run in ` + RunsFolder + `/NAME/SETTING-seedN, with what it printed
beside in SETTING-seedN.log. The same command goes on where it was stopped: what
is finished is not trained again, what was begun is resumed. --minutes ends a
part of it; Ctrl-C saves and ends, and so do the trainings of a sweep that is
killed (kill -9).

` + strings.TrimRight(example, "\n"),
		Example: "  " + program + " sweep experiment.yaml --dry-run\n  " + program + " sweep experiment.yaml --minutes 30",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("name one file of settings; see %s sweep --help", program)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return sweepCommand(c.Context(), s, o, args[0]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Float64Var(&o.minutes, "minutes", 0, "stop after `M` minutes; the same command goes on")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the plan and what is finished, and train nothing")
	f.BoolVar(&o.json, "json", false, "print the table as a JSON document")
	f.StringVar(&o.plot, "plot", "", "draw the table into this `FILE`: .png, .svg or .pdf")
	f.BoolVar(&o.force, "force", false, "with --plot: replace a FILE that is no such picture too")
	f.StringVar(&o.tensorboard, "tensorboard", "", "all runs also write event files below this `DIR`, for tensorboard --logdir DIR")
	return cmd
}

func sweepCommand(ctx context.Context, s *cli.Streams, o sweepOptions, path string) (err error) {
	if !(o.minutes >= 0 && o.minutes <= 1e6) {
		return cli.Usagef("--minutes is %v, expected a number of minutes", o.minutes)
	}
	sweep, err := readSweep(path)
	if err != nil {
		return err
	}
	if o.plot != "" {
		if err := CheckPicture("table", o.plot, o.force); err != nil {
			return err
		}
	}
	if o.self, err = os.Executable(); err != nil {
		return fmt.Errorf("find the program's own file: %w", err)
	}
	runs := sweep.runs()
	results := make([]*sweepResult, len(runs))
	finished := 0
	for i, r := range runs {
		if results[i] = readResult(r, sweep.Metrics, sweep.Then); results[i] != nil {
			finished++
		}
	}
	if err := sweep.begunOtherwise(o.program, runs, results); err != nil {
		return err
	}
	o.each = time.Duration(sweep.Minutes * float64(time.Minute))
	sweep.announce(s, len(runs), finished, o.each)
	if o.dryRun {
		if !o.json {
			for i, r := range runs {
				if results[i] == nil {
					fmt.Fprintln(s.Out, cli.ShellLine(append([]string{o.program}, r.args...)...))
				}
			}
			fmt.Fprintln(s.Out)
		}
		return sweep.print(s, o, runs, results)
	}
	if o.minutes > 0 {
		o.deadline = time.Now().Add(time.Duration(o.minutes * float64(time.Minute)))
	}
	err = sweep.all(ctx, s, o, runs, results)
	if printed := sweep.print(s, o, runs, results); err == nil {
		err = printed
	}
	return err
}

// announce says what is ahead.
func (s *Sweep) announce(streams *cli.Streams, all, finished int, each time.Duration) {
	about := ""
	if each > 0 && finished < all {
		about = fmt.Sprintf("; about %s", s.expected(all-finished, each).Round(time.Second))
	}
	streams.Infof("sweep %s: %s, %s, %d of them finished; %d at a time%s",
		s.Name, wording.Count(len(s.Settings), "setting"), wording.Count(all, "run"), finished, s.Parallel, about)
}

func (s *Sweep) print(streams *cli.Streams, o sweepOptions, runs []sweepRun, results []*sweepResult) error {
	rows := s.rows(runs, results)
	if diagrams := s.diagrams(rows); o.plot != "" && len(diagrams) == 0 {
		streams.Warnf("no run is finished, so %s is not written", o.plot)
	} else if o.plot != "" {
		if err := curves.Save(o.plot, diagrams); err != nil {
			return err
		}
		streams.Infof("wrote %s", o.plot)
	}
	if !o.json {
		return s.writeRows(streams.Out, rows)
	}
	e := json.NewEncoder(streams.Out)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"name": s.Name, "metrics": s.Metrics, "settings": rows})
}

// all trains what is not finished, some runs at a time, until the deadline, a
// failure or a signal.
func (s *Sweep) all(ctx context.Context, streams *cli.Streams, o sweepOptions, runs []sweepRun, results []*sweepResult) error {
	ctx, cancel := context.WithCancel(OrBackground(ctx))
	defer cancel()
	var children children
	ctx, stop := train.OnInterrupt(ctx, func(sig os.Signal) {
		if sig == syscall.SIGTERM { // Ctrl-C reaches them by itself
			children.stop()
		}
	})
	defer stop()
	finished := 0
	for _, r := range results {
		if r != nil {
			finished++
		}
	}
	status := newSweepStatus(streams, len(runs), finished, s.Parallel, o.each)
	defer status.close()
	var wait sync.WaitGroup
	var lock sync.Mutex
	var failures []error
	places := make(chan struct{}, s.Parallel)
	for i, r := range runs {
		if results[i] != nil {
			continue
		}
		places <- struct{}{}
		if ctx.Err() != nil || o.over() {
			break
		}
		wait.Go(func() {
			defer func() { <-places }()
			result, err := s.one(ctx, streams, o, &children, status, r)
			lock.Lock()
			defer lock.Unlock()
			if results[i] = result; err != nil {
				if len(failures) == 0 && len(status.atWork()) > 0 && !errors.Is(err, cli.ErrInterrupted) {
					streams.Warnf("%v\nnothing more is begun; %s to its end, Ctrl-C saves and ends", err, goesOn(status.atWork()))
				}
				failures = append(failures, err)
				cancel()
			}
		})
	}
	wait.Wait()
	if len(failures) > 0 && !errors.Is(failures[0], cli.ErrInterrupted) {
		return failures[0]
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w; the same command goes on", cli.ErrInterrupted)
	}
	return nil
}

func (o sweepOptions) over() bool { return !o.deadline.IsZero() && !time.Now().Before(o.deadline) }

// one trains a run to its end, or as far as there is time, and measures it. The
// result is nil where it is not finished.
func (s *Sweep) one(ctx context.Context, streams *cli.Streams, o sweepOptions, c *children, status *sweepStatus, r sweepRun) (*sweepResult, error) {
	begun, took := time.Now(), time.Duration(0)
	status.begin(r)
	defer func() { status.end(r, took) }()
	args := append([]string(nil), r.args...)
	if checkpointed(r.dir) {
		args = append(args, "--resume")
	} else if err := r.begin(o.program); err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	} else {
		args = append(args, "--force") // what ended before its first checkpoint
	}
	if !o.deadline.IsZero() {
		args = append(args, fmt.Sprintf("--minutes=%.4f", max(0.001, time.Until(o.deadline).Minutes())))
	}
	if o.tensorboard != "" { // no part of the run: it may be asked for later
		args = append(args, "--tensorboard="+o.tensorboard)
	}
	streams.Infof("%s: training", r.dir)
	if _, err := c.run(o.self, args, r.dir+".log"); err != nil {
		return nil, s.failed(ctx, o.program, r, err)
	}
	if !ended(r.dir) {
		streams.Infof("%s: stopped for the time, saved", r.dir)
		return nil, nil
	}
	var document []byte
	for _, line := range s.Then {
		var err error
		if document, err = c.run(o.self, strings.Fields(strings.ReplaceAll(line, "{run}", filepath.ToSlash(r.dir))), r.dir+".log"); err != nil {
			return nil, s.failed(ctx, o.program, r, err)
		}
	}
	result, err := s.measure(r, document)
	if err != nil {
		return nil, err
	}
	took = time.Since(begun)
	result.Seconds = took.Seconds()
	text := ""
	for _, m := range s.Metrics {
		text += fmt.Sprintf("  %s %.4g", m, float64(result.Values[m]))
	}
	streams.Infof("%s: finished after %s%s", r.dir, took.Round(time.Second), text)
	return result, result.save(r)
}

// failed explains how a command of a run ended.
func (s *Sweep) failed(ctx context.Context, program string, r sweepRun, err error) error {
	var exit *exec.ExitError
	if ctx.Err() != nil || errors.As(err, &exit) && exit.ExitCode() == cli.ExitInterrupted {
		return fmt.Errorf("%s: %w", r.dir, cli.ErrInterrupted)
	}
	text := lastMessage(r.dir+".log", program)
	if errors.As(err, &exit) && exit.ExitCode() == cli.ExitUsage {
		return cli.Usagef("%s: %s", r.dir, text)
	}
	return fmt.Errorf("%s: %w: %s", r.dir, err, text)
}

// checkpointed reports whether a run can be resumed.
func checkpointed(dir string) bool {
	x, err := (&checkpoint.Store{Dir: filepath.Join(dir, checkpoint.Folder)}).Index()
	return err == nil && x.Last != nil
}

// ended reports whether the last session of a run reached the end of the
// schedule.
func ended(dir string) bool {
	raw, err := os.ReadFile(filepath.Join(dir, train.SessionsFile))
	if err != nil {
		return false
	}
	lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	var last runlog.Session
	return json.Unmarshal(lines[len(lines)-1], &last) == nil && last.Event == "stop" && last.Note == train.Finished
}

// children are the processes of the runs.
type children struct {
	lock    sync.Mutex
	running map[*os.Process]bool
}

// run runs one command line of the program. What it prints goes to the log; its
// results are returned too.
func (c *children) run(self string, args []string, log string) ([]byte, error) {
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd := exec.Command(self, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, f
	if err := cli.EndsWithParent(cmd); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c.lock.Lock()
	if c.running == nil {
		c.running = map[*os.Process]bool{}
	}
	c.running[cmd.Process] = true
	c.lock.Unlock()
	err = cmd.Wait()
	c.lock.Lock()
	delete(c.running, cmd.Process)
	c.lock.Unlock()
	_, logged := f.Write(out.Bytes())
	return out.Bytes(), errors.Join(err, logged)
}

// stop asks all to save and end.
func (c *children) stop() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for p := range c.running {
		_ = p.Signal(os.Interrupt) // one that has ended meanwhile
	}
}
