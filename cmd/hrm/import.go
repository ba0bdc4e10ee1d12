package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deeploop/augment"
	"deeploop/hrm"
	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/kernel"
	"deeploop/internal/optim"
	"deeploop/internal/runlog"
	"deeploop/internal/tensorfile"
)

// referenceConfig is what the reference trainers call the configuration of a
// run, beside its checkpoints.
const referenceConfig = "all_config.yaml"

// importOptions are the flags of hrm import.
type importOptions struct {
	run                 string
	resetTaskEmbeddings bool
	settings            *cli.Settings[hrm.TrainConfig]
}

func newImportCmd(s *cli.Streams) *cobra.Command {
	o := importOptions{settings: newImportSettings()}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make a run of a checkpoint of the reference code",
		Long: `Read a checkpoint of HRM's or TRM's reference trainer (step_N, as PyTorch saves
it) or the same tensors as safetensors, and make a run of it that hrm eval, hrm
inspect, hrm export and hrm train --resume can use.

FILE is untrusted: nothing in it is run, and only tensors are built from it.
The configuration comes from ` + referenceConfig + ` or ` + command.ConfigFile + ` beside it
(--config names another), sizes and layers from the shapes, and what neither
shows must be said with flags. --data is the dataset it was trained on: the
table of task embeddings has a row for each of its identifiers. Tensors that
are missing, left over or of another shape are named, and nothing is written
then. The run is at step 0: training goes on from the weights with a fresh
optimizer, as the reference's does.`,
		Example: `  hrm import checkpoints/step_414456 --data data/arc-aug-1000
  hrm import step_9000 --data data/arc-aug-1000 --num-heads 8 --H-cycles 2 --L-cycles 2 --halt-max-steps 16 --run runs/imported`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("name one checkpoint FILE; there are %d arguments", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return importRun(s, o, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.run, "run", "", "run folder `DIR` to make (default a new one below "+command.RunsFolder+"/)")
	f.StringVar(&o.run, "out", "", "the same as --run")
	cobra.CheckErr(f.MarkHidden("out"))
	f.BoolVar(&o.resetTaskEmbeddings, "reset-task-embeddings", false, "the dataset has another number of identifiers: give each of them the mean of the checkpoint's task embeddings")
	o.settings.AddFlags(f)
	return cmd
}

// newImportSettings reads the configurations of the reference trainers too.
func newImportSettings() *cli.Settings[hrm.TrainConfig] {
	set := newTrainSettings()
	set.Foreign = nil
	set.Skip = map[string]bool{}
	for _, key := range []string{
		"project_name", "run_name", "checkpoint_path", "load_checkpoint", "evaluators", "data_paths", "data_paths_test",
		"min_eval_interval", "freeze_weights", "arch.forward_dtype", "arch.batch_size", "arch.seq_len", "arch.vocab_size",
		"arch.num_puzzle_identifiers", "arch.causal",
	} {
		set.Skip[key] = true
	}
	return set
}

func importRun(s *cli.Streams, o importOptions, path string) error {
	f, err := openForeign(path)
	if err != nil {
		return err
	}
	defer f.Close()
	foreign, err := hrm.OpenForeign(f)
	if err != nil {
		return err
	}
	c, err := importConfig(s, o, path, foreign)
	if err != nil {
		return err
	}
	d, err := importDataset(s, o, path, &c, foreign)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := c.Arch.CheckEvaluation(kernel.Float32, 1, runlog.PhysicalBytes()); err != nil {
		return err
	}
	progress := command.NewProgress(s)
	defer progress.End()
	progress.Doing("reading " + path)
	m, err := foreign.Model(c.Arch, o.resetTaskEmbeddings)
	if err != nil {
		return err
	}
	choice, err := command.Compute{Kernel: c.Kernel, Precision: c.Precision, Threads: c.Threads}.Open(s, false)
	if err != nil {
		return err
	}
	c.Kernel, c.Precision, c.Threads = choice.Backend.Name(), choice.Precision.String(), choice.Backend.Threads()
	err = finiteWeights(choice.Backend, m)
	choice.Backend.Close()
	if err != nil {
		return cli.Usagef("import %s: %w: the checkpoint is broken, take an earlier one", path, err)
	}
	if o.run == "" {
		if o.run, err = command.NewRunFolder("imported", time.Now()); err != nil {
			return err
		}
	}
	progress.Doing("writing " + o.run)
	where, err := saveImported(o, path, c, m, d)
	if err != nil {
		return err
	}
	progress.End()
	describeImport(s.Out, where, o, f, foreign, m)
	return nil
}

// finiteWeights names the first tensor with a NaN or an infinity.
func finiteWeights(b kernel.Backend, m *hrm.Model) error {
	for _, p := range m.Params() {
		if err := optim.Finite(b, "weight", p.Name, p.Data); err != nil {
			return err
		}
	}
	if m.PuzzleTable.Len() == 0 {
		return nil
	}
	return optim.Finite(b, "task embedding", "puzzle_emb", m.PuzzleTable)
}

// openForeign opens a file of tensors. A folder is none, but may hold some.
func openForeign(path string) (*tensorfile.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, cli.Usagef("import: %w", err)
	}
	if !info.IsDir() {
		return tensorfile.Open(path)
	}
	if _, err := checkpoint.Find(path, checkpoint.LastSaved); err == nil {
		return nil, cli.Usagef("import %s: it is a run or a checkpoint of this program already; hrm eval and hrm export take it", path)
	}
	steps, err := filepath.Glob(filepath.Join(path, "step_*"))
	steps = slices.DeleteFunc(steps, func(f string) bool { return strings.Contains(f, "all_preds") })
	if err != nil || len(steps) == 0 {
		return nil, cli.Usagef("import %s: it is a folder, expected a checkpoint file such as step_1000", path)
	}
	return nil, cli.Usagef("import %s: it is a folder; name one of its checkpoints: %s", path, some(steps))
}

// importConfig puts the configuration together: what the shapes show, the file
// beside the checkpoint, flags.
func importConfig(s *cli.Streams, o importOptions, path string, foreign *hrm.Foreign) (hrm.TrainConfig, error) {
	base := foreign.Preset()
	var err error
	if base.Arch, err = foreign.Deduce(base.Arch); err != nil {
		return base, err
	}
	from := "from --config"
	if o.settings.File == "" {
		from = "beside the checkpoint"
		for _, name := range []string{referenceConfig, command.ConfigFile} {
			beside := filepath.Join(filepath.Dir(path), name)
			if _, err := os.Stat(beside); err == nil {
				o.settings.File = beside
				break
			}
		}
	}
	if o.settings.File != "" {
		s.Infof("configuration: %s (%s)", o.settings.File, from)
	}
	r, err := o.settings.Resolve(base)
	if err != nil {
		return base, err
	}
	c := r.Value
	if c.Arch.OneNetwork() != base.Arch.OneNetwork() {
		return c, r.Explain(&hrm.ConfigError{Key: "arch.name", Found: c.Arch.Name, Want: base.Arch.Name + ", as the tensors of " + path + " have it"})
	}
	if c.Arch.OneNetwork() { // what its reference ignores
		c.Arch.HLayers = 0
		if c.Arch.MLPT && c.Arch.PosEncodings == hrm.PosRope {
			c.Arch.PosEncodings = hrm.PosNone
		}
	}
	for _, f := range o.settings.Fields() {
		if want, have := o.settings.Text(base, f), o.settings.Text(c, f); slices.Contains(hrm.Deduced, f.Key) && want != have {
			if f.Key == "arch.expansion" && c.Arch.MLPWidth() == base.Arch.MLPWidth() {
				continue // another that comes to the same
			}
			if f.Key == "arch.pos_encodings" && have != hrm.PosLearned && want != hrm.PosLearned {
				continue // rope and none look alike
			}
			return c, r.Explain(&hrm.ConfigError{Key: f.Key, Found: have, Want: want + ", as the tensors of " + path + " have it"})
		}
	}
	published := "HRM"
	if foreign.TRM() {
		published = "TRM on ARC"
	}
	var missing, flags []string
	for _, key := range hrm.Undeduced {
		if !r.Chosen(key) {
			missing = append(missing, key)
			for _, f := range o.settings.Fields() {
				if f.Key == key {
					flags = append(flags, "--"+f.Flag+" "+o.settings.Text(foreign.Preset(), f))
				}
			}
		}
	}
	if len(missing) > 0 {
		return c, cli.Usagef("import %s: the tensors do not show %s; name the %s of its run with --config, or give them (published %s: %s)",
			path, strings.Join(missing, ", "), referenceConfig, published, strings.Join(flags, " "))
	}
	return c, r.Explain(c.Validate())
}

// importDataset opens the dataset that the checkpoint belongs to; the
// architecture takes its sizes.
func importDataset(s *cli.Streams, o importOptions, path string, c *hrm.TrainConfig, foreign *hrm.Foreign) (*augment.Dataset, error) {
	build := "hrm build-data makes it"
	if rows := foreign.Identifiers(); rows > 0 {
		build = fmt.Sprintf("it has %d identifiers (%s)", rows, buildHint(rows))
	}
	if c.DataPath == "" {
		return nil, cli.Usagef("import %s: name the dataset it was trained on with --data DIR; %s", path, build)
	}
	if _, err := os.Stat(c.DataPath); err != nil {
		return nil, cli.Usagef("import %s: open its dataset: %w; give its place with --data DIR; %s", path, err, build)
	}
	d, err := openDataset(s, c.DataPath)
	if err != nil {
		return nil, err
	}
	vocab, rows := c.Arch.VocabSize, foreign.Identifiers()
	c.Arch.SizeFor(d)
	switch have := d.NumIdentifiers(); {
	case c.Arch.VocabSize != vocab:
		err = cli.Usagef("import %s: it has a vocabulary of %d, dataset %s has %d; name the dataset it was trained on with --data", path, vocab, c.DataPath, c.Arch.VocabSize)
	case rows > 0 && rows != have && !o.resetTaskEmbeddings:
		err = cli.Usagef("import %s: its task embeddings are of %d identifiers, dataset %s has %d. Name the dataset it was trained on with --data (%s); "+
			"or, to train it on this one, give every identifier the mean of the table with --reset-task-embeddings: what it learned about single tasks is lost then",
			path, rows, c.DataPath, have, buildHint(rows))
	}
	if err != nil {
		d.Close()
	}
	return d, err
}

// builds are commands that make datasets of the usual sizes.
var builds = map[int]string{
	876408: "--input arc-agi-1 --input concept-arc/corpus",
	8641:   "--input arc-agi-1 --input concept-arc/corpus --num-aug 8",
	961:    "--input arc-agi-1 --input concept-arc/corpus --num-aug 0",
	7201:   "--input arc-agi-1 --num-aug 8",
	801:    "--input arc-agi-1 --num-aug 0",
	10081:  "--input arc-agi-2 --num-aug 8",
	1121:   "--input arc-agi-2 --num-aug 0",
}

// buildHint is the command that makes a dataset of so many identifiers.
func buildHint(rows int) string {
	if args, ok := builds[rows]; ok {
		return "hrm build-data " + args + " makes one of that size"
	}
	return "hrm build-data --input arc-agi-1 --input concept-arc/corpus makes that of ARC-1, --input arc-agi-2 that of ARC-2; a folder of the reference's builder serves too"
}

// saveImported makes the run, at step 0.
func saveImported(o importOptions, path string, c hrm.TrainConfig, m *hrm.Model, d *augment.Dataset) (string, error) {
	config, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	meta := checkpoint.Meta{Kind: hrm.Kind, Program: cli.Writer(program) + ", imported from " + filepath.Base(path), Config: config}
	if c.Arch.PuzzleEmbDim > 0 {
		id, err := hrm.DatasetIdentity(d)
		if err != nil {
			return "", err
		}
		meta.Identity = &id
	}
	if d.Manifest != nil {
		meta.DatasetHash = d.Manifest.DatasetHash
	}
	var yaml bytes.Buffer
	if err := o.settings.WriteYAML(&yaml, c, "Configuration of this run, made by hrm import of "+filepath.Base(path)); err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	var set checkpoint.Set
	m.State(&set)
	return command.Imported{Run: o.run, Meta: meta, State: &set, Config: yaml.Bytes()}.Save()
}

// stepFile is the name of a checkpoint of the reference.
var stepFile = regexp.MustCompile(`^step_(\d+)$`)

// describeImport says what came from where, and what comes next.
func describeImport(w io.Writer, where string, o importOptions, f *tensorfile.File, foreign *hrm.Foreign, m *hrm.Model) {
	c := m.Config
	fmt.Fprintf(w, "wrote %s: %d parameters", where, c.NumParams())
	if c.PuzzleEmbDim > 0 {
		fmt.Fprintf(w, " and %d task embeddings of %d", c.NumPuzzleIdentifiers, c.PuzzleEmbDim)
	}
	fmt.Fprintf(w, " of %s (%s)\n", f.Path, f.Format)
	if step := stepFile.FindStringSubmatch(filepath.Base(f.Path)); step != nil {
		unit := "steps"
		if step[1] == "1" {
			unit = "step"
		}
		fmt.Fprintf(w, "trained for %s %s elsewhere, step 0 here\n", step[1], unit)
	}
	fmt.Fprintf(w, "%d of %d tensors were taken", len(f.Names())-len(foreign.Ignored), len(f.Names()))
	if len(foreign.Ignored) > 0 {
		fmt.Fprintf(w, ", not needed: %s", some(foreign.Ignored))
	}
	fmt.Fprintln(w)
	switch rows := foreign.Identifiers(); {
	case rows > 0 && rows != c.NumPuzzleIdentifiers:
		fmt.Fprintf(w, "every identifier of the dataset has the mean of the checkpoint's %d task embeddings\n", rows)
	case rows > 1:
		fmt.Fprintln(w, "a checkpoint does not name its identifiers, so only their number was compared with the dataset's: build it with the same tasks, order and seed")
	}
	fmt.Fprintf(w, "next  %s\n", cli.ShellLine(program, "eval", "--run", o.run))
}
