package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/kernel"
	"deeploop/internal/runlog"
	"deeploop/internal/tensorfile"
	"deeploop/lm"
	"deeploop/lm/tokens"
)

// importOptions are the flags of lm import.
type importOptions struct {
	run, config, tokenizer, prefix string
}

func newImportCmd(s *cli.Streams) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import DIR|FILE",
		Short: "Make a run of an exported model",
		Long: `Read a model that lm export or another program wrote, a folder or its
` + lm.ExportTensors + ` (or the same tensors as torch.save writes a state dict),
and make a run of it that lm eval, lm generate and lm serve can use. It has one
checkpoint, of weights alone: lm train --resume trains it further, at step 0 of
a schedule of its own and with a fresh optimizer. Tensors that are missing, left
over or of another shape are named, and nothing is written then.`,
		Example: `  lm import exported --run runs/imported
  lm import exported --run runs/more && lm train --run runs/more --resume --data data/books --steps 500 --lr 1e-4
  lm import weights.safetensors --config config.json --prefix model. --run runs/weights`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("name one exported model, a folder or a file; there are %d arguments", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return importRun(s, o, args[0]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.run, "run", "", "run folder `DIR` to make (required)")
	f.StringVar(&o.config, "config", "", "configuration `FILE` (default "+lm.ExportConfig+" beside the tensors)")
	f.StringVar(&o.tokenizer, "tokenizer", "", "tokenizer `FILE` (default "+lm.ExportTokenizer+" beside the tensors)")
	f.StringVar(&o.prefix, "prefix", "", "read the tensors whose names begin so, and no others")
	return cmd
}

func importRun(s *cli.Streams, o importOptions, path string) error {
	if o.run == "" {
		return cli.Usagef("--run is missing: the run folder to make")
	}
	given := path
	info, err := os.Stat(path)
	if err != nil {
		return cli.Usagef("import: %w", err)
	}
	if info.IsDir() {
		path = filepath.Join(path, lm.ExportTensors)
	}
	dir := filepath.Dir(path)
	if o.config == "" {
		o.config = filepath.Join(dir, lm.ExportConfig)
	}
	if o.tokenizer == "" {
		o.tokenizer = filepath.Join(dir, lm.ExportTokenizer)
	}
	e, tok, err := readDescription(o)
	if err != nil {
		return command.Instead(err, "import", given, command.Exported)
	}
	f, err := tensorfile.Open(path)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer f.Close()
	if err := e.CheckEvaluation(kernel.Float32, 1, runlog.PhysicalBytes()); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	progress := command.NewProgress(s)
	defer progress.End()
	progress.Doing("reading " + path)
	m, err := lm.Import(e, f, o.prefix)
	if err != nil {
		return err
	}
	progress.Doing("writing " + o.run)
	where, err := saveImported(o.run, given, e, m, tok)
	if err != nil {
		return err
	}
	progress.End()
	fmt.Fprintf(s.Out, "wrote %s: %d parameters\n%s\n", where, e.NumParams(), m.ResidualReport())
	if tok == nil {
		s.Infof("no tokenizer came with the model: commands that read or write text need one (--tokenizer)")
	}
	return nil
}

// saveImported makes the run. Of its configuration the architecture is the
// model's; the rest is what a training of it starts from.
func saveImported(run, from string, e lm.Exported, m *lm.Model, tok []byte) (where string, err error) {
	c := lm.PresetLaptop()
	c.Arch = e.Config
	config, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	name := filepath.Base(from)
	var yaml bytes.Buffer
	if err := newTrainSettings().WriteYAML(&yaml, c, "Configuration of this run, made by lm import of "+name); err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	var set checkpoint.Set
	m.State(&set)
	return command.Imported{
		Run: run, Step: e.Step, State: &set, Config: yaml.Bytes(),
		Meta: checkpoint.Meta{Kind: lm.Kind, Program: cli.Writer(program) + ", imported from " + name, Config: config, Tokenizer: tok},
	}.Save()
}

// readDescription reads configuration and tokenizer; a tokenizer that is not
// there is nil where no flag names it.
func readDescription(o importOptions) (lm.Exported, []byte, error) {
	f, err := os.Open(o.config)
	if err != nil {
		return lm.Exported{}, nil, cli.Usagef("import: %w; name the configuration with --config FILE", err)
	}
	defer f.Close()
	e, err := lm.ReadExported(f, o.config)
	if err != nil {
		return e, nil, err
	}
	raw, err := os.ReadFile(o.tokenizer)
	if errors.Is(err, fs.ErrNotExist) && filepath.Base(o.tokenizer) == lm.ExportTokenizer {
		return e, nil, nil
	}
	if err != nil {
		return e, nil, cli.Usagef("import: %w", err)
	}
	tok, err := tokens.Load(bytes.NewReader(raw))
	if err != nil {
		return e, nil, cli.Usagef("import: %s: %w", o.tokenizer, err)
	}
	have := e.Config
	have.Vocabulary(tok.VocabSize())
	switch {
	case have.VocabSize != e.VocabSize && have.VocabMultiple > 1:
		return e, nil, cli.Usagef("import: %s has %d ids, which vocab_multiple %d makes %d; the model's vocab_size is %d",
			o.tokenizer, tok.VocabSize(), have.VocabMultiple, have.VocabSize, e.VocabSize)
	case have.VocabSize != e.VocabSize:
		return e, nil, cli.Usagef("import: %s has %d ids, the model's vocab_size is %d", o.tokenizer, tok.VocabSize(), e.VocabSize)
	case e.Tokenizer != "" && e.Tokenizer != tok.Name():
		return e, nil, cli.Usagef("import: %s holds tokenizer %s, the model's is %s", o.tokenizer, tok.Name(), e.Tokenizer)
	}
	return e, raw, nil
}
