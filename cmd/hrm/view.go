package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deeploop/hrm"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/netlimit"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
	"deeploop/view"
)

// viewDefault is where hrm view listens unless told otherwise.
const viewDefault = "127.0.0.1:8077"

// shownOptions are the flags that hrm view and hrm report share.
type shownOptions struct {
	data        string
	compute     command.Compute
	kernelGiven bool
}

func (o *shownOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.data, "data", "", "dataset `DIR` of runs and predictions (default the ones they name)")
	o.compute.AddFlags(f, "that of the training")
}

// viewOptions are the flags of hrm view.
type viewOptions struct {
	shownOptions
	addr      string
	addrGiven bool
	open      bool
}

func newViewCmd(s *cli.Streams) *cobra.Command {
	var o viewOptions
	cmd := &cobra.Command{
		Use:   "view [PATH]...",
		Short: "Show tasks, datasets, predictions, curves and a model at work in the browser",
		Long: `Serve a web page, to this machine alone, that shows

- tasks: demonstrations and tests of a file, a folder or Kaggle's files;
- datasets: augmented examples as the model reads them;
- predictions: input, truth and the ranked answers of each task, with votes,
  mean halt probability and the cells that are wrong;
- curves of one or several runs, live while they train;
- a model at work: its answer after every segment, and its attention.

PATH is a run (its evaluations and its dataset come with it), a dataset, a
predictions file, tasks, or a folder of runs or datasets. Without PATH the
newest run and the newest dataset are shown, or the sample tasks. The page
needs nothing from anywhere else. Nothing is written. Ctrl-C ends it.

Models are opened and votes counted when somebody looks. j and k go through
lists, / filters, ? lists the other keys.`,
		Example: `  hrm view
  hrm view runs/demo runs/other
  hrm view ../ARC-AGI/data/evaluation data/arc-aug-1000`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			o.kernelGiven, o.addrGiven = c.Flags().Changed("kernel"), c.Flags().Changed("addr")
			return viewRun(c.Context(), s, o, args)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.addr, "addr", viewDefault, "`HOST:PORT` to listen on; port 0 is any free one")
	f.BoolVar(&o.open, "open", false, "open the page in the browser")
	o.addFlags(f)
	return cmd
}

func viewRun(ctx context.Context, s *cli.Streams, o viewOptions, paths []string) error {
	found, err := shown(paths, o.data)
	if err != nil {
		return err
	}
	l, err := viewListener(o)
	if err != nil {
		return err
	}
	defer l.Close()
	progress := command.NewProgress(s)
	progress.Patience = time.Second
	defer progress.End()
	server := view.New(found, viewSources(s, progress, o.shownOptions, o.addr))
	defer server.Close()
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	for _, f := range found {
		path := f.Path
		if path == "" {
			path = "the sample tasks"
		}
		s.Infof("%-8s %s", f.Kind, path)
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		s.Warnf("other machines can reach this address, and see what is shown")
	}
	url := "http://" + l.Addr().String() + "/"
	fmt.Fprintln(s.Out, url)
	if o.open {
		if err := openBrowser(url); err != nil {
			s.Warnf("no browser was opened: %v", err)
		}
	}
	return server.Run(ctx, l)
}

// viewListener listens where told, or else at the usual port or, where that is
// taken, at any free one.
func viewListener(o viewOptions) (net.Listener, error) {
	l, err := netlimit.Listen(o.addr)
	if err != nil && !o.addrGiven && errors.Is(err, syscall.EADDRINUSE) {
		return netlimit.Listen("127.0.0.1:0")
	}
	return l, err
}

// shown says what the paths are, or what is shown without any.
func shown(paths []string, data string) ([]view.Item, error) {
	var found []view.Item
	for _, path := range paths {
		items, err := view.Guess(path)
		if err != nil {
			return nil, err
		}
		if items[0].Kind == view.KindTasks {
			if err := command.Another("view", path, command.ARCTasks); err != nil {
				return nil, err
			}
		}
		found = append(found, items...)
	}
	if len(paths) == 0 {
		run, err := command.NewestRun(hrm.Kind)
		if err != nil {
			return nil, err
		}
		if run != "" {
			found = append(found, view.Item{Kind: view.KindRun, Path: run})
		}
		set, err := command.NewestFolder(command.DataFolder, "manifest.json", func(dir string) bool {
			items, err := view.Guess(dir)
			return err == nil && len(items) == 1 && items[0].Kind == view.KindDataset
		})
		if err != nil {
			return nil, err
		}
		if set != "" {
			found = append(found, view.Item{Kind: view.KindDataset, Path: set})
		}
		if len(found) == 0 {
			found = []view.Item{{Kind: view.KindTasks}}
		}
	}
	for i := range found {
		if found[i].Kind == view.KindRun || found[i].Kind == view.KindAnswers {
			found[i].Data = data
		}
	}
	return found, nil
}

// viewSources gives a server what only programs can: votes and models.
func viewSources(s *cli.Streams, progress *runlog.Progress, o shownOptions, addr string) view.Options {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = ""
	}
	return view.Options{
		Version: cli.Release(),
		Now:     time.Now,
		Log:     s.ServerLog(slog.LevelWarn),
		Host:    strings.TrimSpace(host),
		Answers: func(_ context.Context, path, data string) (*view.Answers, error) {
			return countForView(progress, path, data)
		},
		Curve: func(_ context.Context, path, data string) (*view.Curve, error) {
			return curveForView(s, progress, path, data)
		},
		Model: func(_ context.Context, run, data string) (*view.Model, error) {
			progress.Doing("opening the model of " + run)
			defer progress.End()
			return openForView(s, o, run, data)
		},
	}
}

// openBrowser asks the system to show a page.
func openBrowser(url string) error {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	c := exec.Command(name, args...)
	if err := c.Start(); err != nil {
		return err
	}
	go func() { _ = c.Wait() }() // it may live as long as the browser
	return nil
}
