package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/files"
	"deeploop/internal/kernel"
	"deeploop/lm"
	"deeploop/lm/tokens"
)

// exportOptions are the flags of lm export.
type exportOptions struct {
	model modelFlags
	out   string
	dtype string
	force bool
}

func newExportCmd(s *cli.Streams) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write a trained model for other programs",
		Long: `Write a trained model into a folder: ` + lm.ExportTensors + ` with the weights,
` + lm.ExportConfig + ` with the architecture, ` + lm.ExportTokenizer + `. lm import reads it back,
exactly in fp32. The configuration's "resolved" has what follows from its other
keys (alpha, the width of the MLP), so that a reader needs no rule of ours.`,
		Example: `  lm export --run runs/a --out exported
  lm export --checkpoint runs/a/checkpoints/step-00000500 --weights raw --dtype bf16 --out exported-bf16`,
		RunE: func(*cobra.Command, []string) error { return exportRun(s, o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.model.addCheckpoint(f)
	f.StringVar(&o.out, "out", "", "`DIR` to write into, made where it does not exist (required)")
	f.StringVar(&o.dtype, "dtype", "fp32", "type of the weights: fp32, or bf16 (rounded)")
	f.BoolVar(&o.force, "force", false, "replace an exported model")
	return cmd
}

func exportRun(s *cli.Streams, o exportOptions) error {
	act, name := kernel.Float32, lm.Float32Name
	switch o.dtype {
	case "fp32":
	case "bf16":
		act, name = kernel.BFloat16, lm.BFloat16Name
	default:
		return cli.Usagef("--dtype is %q, expected fp32 or bf16", o.dtype)
	}
	if o.out == "" {
		return cli.Usagef("--out is missing: the folder to write into")
	}
	ck, c, err := o.model.openCheckpoint()
	if err != nil {
		return err
	}
	defer ck.Close()
	tok, err := checkpointTokenizer(ck)
	if err != nil {
		return err
	}
	progress := command.NewProgress(s)
	defer progress.End()
	progress.Doing("reading checkpoint " + ck.Dir())
	m, weights, err := lm.LoadModel(ck, c.Arch, kernel.Float32, o.model.weights)
	if err != nil {
		return err
	}
	config, err := json.MarshalIndent(lm.Exported{
		Architecture: lm.ExportArchitecture, Version: lm.ExportVersion, Config: c.Arch, Resolved: m.Resolved(),
		Tokenizer: tok.Name(), TokenizerSize: tok.VocabSize(), Separator: tok.Separator(),
		Type: name, Weights: weights, Step: ck.Step(), Program: cli.Writer(program),
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", lm.ExportConfig, err)
	}
	if err := exportFolder(o.out, o.force); err != nil {
		return err
	}
	progress.Doing("writing " + o.out)
	err = writeExport(o.out, []exportFile{
		{lm.ExportTensors, func(w io.Writer) error { return m.WriteTensors(w, act) }},
		{lm.ExportTokenizer, func(w io.Writer) error { return tokens.Save(w, tok) }},
		{lm.ExportConfig, func(w io.Writer) error {
			_, err := w.Write(append(config, '\n'))
			return err
		}},
	})
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	progress.End()
	fmt.Fprintf(s.Out, "wrote %s: %d parameters in %s, %s weights of step %d\n", o.out, c.Arch.NumParams(), name, weights, ck.Step())
	return nil
}

// exportFolder checks that the folder may be written into: there is nothing in
// it, or a model with force.
func exportFolder(dir string, force bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("export: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), files.TempPrefix) }) // of an export that was killed
	if len(entries) == 0 {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(dir, lm.ExportConfig))
	if err != nil || !bytes.Contains(raw, []byte(`"`+lm.ExportArchitecture+`"`)) {
		return cli.Usagef("export: folder %s is not empty and holds no exported model; choose another --out", dir)
	}
	if !force {
		return cli.Usagef("export: folder %s holds an exported model already; replace it with --force, or choose another --out", dir)
	}
	return nil
}

// exportFile is a file of an exported model.
type exportFile struct {
	name string
	fill func(io.Writer) error
}

// writeExport writes the files into a folder, made where there is none. When
// one cannot be written whole, what was there stays. The last is the
// configuration: without it a folder is no model.
func writeExport(dir string, all []exportFile) (err error) {
	_, missing := os.Stat(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var writing []*files.File
	defer func() {
		for _, w := range writing {
			w.Abort()
		}
		if err != nil && missing != nil {
			os.Remove(dir) // it is empty
		}
	}()
	for _, f := range all {
		w, err := files.Create(filepath.Join(dir, f.name))
		if err != nil {
			return err
		}
		writing = append(writing, w)
		if err := f.fill(w); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(dir, lm.ExportConfig)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, w := range writing {
		if err := w.Commit(); err != nil {
			return err
		}
	}
	return nil
}
