package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/files"
	"deeploop/internal/train"
)

// Defaults for the embedded sample tasks, which are small.
const (
	sampleNumAug  = 100
	sampleMaxGrid = 10
)

// buildDataOptions are the flags of hrm build-data.
type buildDataOptions struct {
	inputs   []string
	out      string
	tasks    string
	verify   string
	force    bool
	settings augment.Settings
}

func newBuildDataCmd(s *cli.Streams) *cobra.Command {
	var opt buildDataOptions
	cmd := &cobra.Command{
		Use:   "build-data",
		Short: "Augment tasks into a dataset to train and evaluate on",
		Long: `Build a dataset of ARC tasks and randomly augmented copies of them (turned,
flipped, recoloured, moved), in the layout of the reference HRM code and, for
the same seed, with its very bytes.

--input is a folder of task folders (ARC-AGI, ConceptARC), a flat folder of
tasks, Kaggle's combined files or a single task; it may be repeated, and the
order matters. Test pairs of a folder called evaluation, of flat folders, single
files and Kaggle's files are held out; all other pairs are trained on. Without
--input the embedded sample tasks are used, with --num-aug 100 --max-grid 10.

The folder appears when it is complete. --verify checks every file of a
dataset against its manifest.json: exit code 1 when something is missing, extra
or changed, 2 when the folder is no dataset.`,
		Example: `  hrm build-data
  hrm build-data --input arc-agi-1 --input concept-arc/corpus
  hrm build-data --input arc-agi-1 --num-aug 100 --max-grid 10 --out data/arc1-small
  hrm build-data --verify data/arc-aug-1000`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			changed := func(flag string) bool { return cmd.Flags().Changed(flag) }
			if changed("verify") {
				return verifyRun(cmd.Context(), s, opt.verify, changed)
			}
			if changed("out") && opt.out == "" {
				return cli.Usagef("write dataset: --out is empty, expected a folder")
			}
			if changed("tasks") && opt.tasks == "" {
				return cli.Usagef("read task list: --tasks is empty, expected a file")
			}
			if len(opt.inputs) == 0 {
				if !changed("num-aug") {
					opt.settings.NumAug = sampleNumAug
				}
				if !changed("max-grid") {
					opt.settings.MaxGrid = sampleMaxGrid
				}
			}
			return buildDataRun(cmd.Context(), s, opt)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&opt.inputs, "input", nil, "folder or file of tasks, may be repeated (default: the sample tasks)")
	f.StringVar(&opt.out, "out", "", "dataset `folder` to write (default data/arc-aug-N)")
	f.IntVar(&opt.settings.NumAug, "num-aug", 1000, "augmented copies wanted per task (sample tasks: 100)")
	f.Uint32Var(&opt.settings.Seed, "seed", 42, "seed of all random choices")
	f.IntVar(&opt.settings.MaxGrid, "max-grid", arc.MaxSide, "side of the canvas; tasks with larger grids are skipped (sample tasks: 10)")
	f.StringVar(&opt.tasks, "tasks", "", "`file` with the ids of the tasks to keep, one a line")
	f.StringVar(&opt.settings.Compress, "compress", "", "zstd writes .npy.zst files, which train and eval take as they are")
	f.BoolVar(&opt.force, "force", false, "replace an existing dataset when the new one is complete")
	f.StringVar(&opt.verify, "verify", "", "check the dataset in this `folder` instead of building one")
	f.StringVar(&opt.settings.DestOrder, "dest-order", augment.TrainFirst, "split drawn first: train_first or test_first")
	cobra.CheckErr(f.MarkHidden("dest-order"))
	return cmd
}

func buildDataRun(ctx context.Context, s *cli.Streams, opt buildDataOptions) error {
	if err := opt.settings.Check(); err != nil {
		return err
	}
	if opt.out == "" {
		opt.out = filepath.Join(command.DataFolder, fmt.Sprintf("arc-aug-%d", opt.settings.NumAug))
	}
	var names []string
	if opt.tasks != "" {
		var err error
		if names, err = readTaskList(opt.tasks); err != nil {
			return err
		}
	}
	progress := command.NewProgress(s)
	defer progress.End()
	progress.Doing("reading tasks")
	load := arc.Samples
	if len(opt.inputs) > 0 {
		load = func() (*arc.Corpus, error) { return arc.Load(opt.inputs...) }
	}
	corpus, err := load()
	if err != nil {
		if len(opt.inputs) == 1 {
			err = command.Instead(err, "read tasks", opt.inputs[0], command.ARCTasks)
		}
		return err
	}
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	progress.Doing("drawing augmentations")
	show := progress.Bytes()
	m, err := augment.Build(ctx, corpus, opt.out, augment.BuildOptions{
		Settings: opt.settings, Tasks: names, Force: opt.force, Progress: func(done, total int64) { show("building", done, total) }, DiskFree: files.Free,
	})
	progress.Clear()
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("build dataset %s: %w, nothing was left behind", opt.out, cli.ErrInterrupted)
	}
	if err != nil {
		return err
	}
	for _, w := range m.Warnings {
		s.Warnf("%s", w)
	}
	if short := m.ShortSummary(); short != "" {
		s.Infof("note: %s", short)
	}
	c := m.Counts
	fmt.Fprintf(s.Out, "wrote %s\n", opt.out)
	fmt.Fprintf(s.Out, "  tasks        %d, of which %d with held-out tests (%d test pairs, %d unlabelled)\n", c.Tasks, c.HeldOutTasks, c.TestPairs, c.UnlabelledTests)
	fmt.Fprintf(s.Out, "  identifiers  %d\n", c.Identifiers)
	fmt.Fprintf(s.Out, "  train        %d examples of %d puzzles in %d groups\n", c.Train.Examples, c.Train.Puzzles, c.Train.Groups)
	fmt.Fprintf(s.Out, "  test         %d examples of %d puzzles in %d groups\n", c.Test.Examples, c.Test.Puzzles, c.Test.Groups)
	fmt.Fprintf(s.Out, "  sequence     %d tokens, a %dx%d canvas\n", m.Settings.MaxGrid*m.Settings.MaxGrid, m.Settings.MaxGrid, m.Settings.MaxGrid)
	fmt.Fprintf(s.Out, "  dataset hash %s\n", m.DatasetHash)
	return nil
}

// readTaskList reads task ids, one a line; empty lines do not count.
func readTaskList(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cli.Usagef("read task list: %w", err)
	}
	defer f.Close()
	names := []string{}
	for sc := bufio.NewScanner(f); ; {
		if !sc.Scan() {
			if sc.Err() != nil {
				return nil, cli.Usagef("read task list %s: %w", path, sc.Err())
			}
			return names, nil
		}
		if name := strings.TrimSpace(strings.TrimPrefix(sc.Text(), "\ufeff")); name != "" {
			names = append(names, name)
		}
	}
}

// verifyRun checks a dataset folder.
func verifyRun(ctx context.Context, s *cli.Streams, dir string, changed func(string) bool) error {
	for _, flag := range []string{"input", "out", "tasks", "compress", "force", "num-aug", "seed", "max-grid", "dest-order"} {
		if changed(flag) {
			return cli.Usagef("verify dataset: --verify builds nothing, so it does not go with --%s", flag)
		}
	}
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	progress := command.NewProgress(s)
	defer progress.End()
	show := progress.Bytes()
	problems, err := augment.Verify(ctx, dir, func(done, total int64) { show("verifying", done, total) })
	progress.Clear()
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("verify dataset %s: %w", dir, cli.ErrInterrupted)
	}
	if err != nil {
		return command.Instead(err, "verify dataset", dir, command.ReasonerData)
	}
	if len(problems) > 0 {
		for _, p := range problems {
			fmt.Fprintln(s.Out, p)
		}
		return fmt.Errorf("verify dataset %s: %d of its files are not as built; build it again", dir, len(problems))
	}
	m, err := augment.ReadManifest(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%s is whole: %d files, dataset hash %s\n", dir, len(m.Files), m.DatasetHash)
	return nil
}
