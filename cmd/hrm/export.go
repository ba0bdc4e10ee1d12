package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"deeploop/hrm"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/files"
	"deeploop/internal/kernel"
	"deeploop/internal/safetensors"
	"deeploop/internal/torchfile"
)

// exportOptions are the flags of hrm export.
type exportOptions struct {
	evalOptions  // which checkpoint, which weights, force
	format       string
	prefix       string
	forwardDType string

	prefixGiven bool
}

func newExportCmd(s *cli.Streams) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write a trained model for the reference code or other programs",
		Long: `Write the weights of a checkpoint into one file. --format reference is the
state dict that the references' trainers and torch.load read, with the
configuration it needs as ` + referenceConfig + ` beside it; it takes what the reference
can express, models of placement postnorm without gains. --format safetensors
has the same names and takes any model, with ` + command.ConfigFile + ` beside it. hrm import
reads both back.`,
		Example: `  hrm export --run runs/arc1 --out checkpoints/step_20000
  hrm export --run runs/arc1 --format safetensors --out arc1.safetensors`,
		RunE: func(c *cobra.Command, _ []string) error {
			o.prefixGiven = c.Flags().Changed("prefix")
			return exportRun(s, o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.AddFlags(f, "export")
	f.StringVar(&o.weights, "weights", "", "ema or raw (default ema where the run kept it)")
	f.StringVar(&o.format, "format", string(hrm.FormatReference), "reference or safetensors")
	f.StringVar(&o.out, "out", "", "`FILE` to write; the reference calls its own step_N (required)")
	f.StringVar(&o.forwardDType, "forward-dtype", "", "bfloat16 or float32: type of the initial states, and arch.forward_dtype of the reference (default bfloat16; float32 with safetensors)")
	f.StringVar(&o.prefix, "prefix", hrm.CompiledPrefix, "what names begin with (safetensors: "+hrm.PlainPrefix+")")
	f.BoolVar(&o.force, "force", false, "replace files that hrm export did not write too")
	return cmd
}

func exportRun(s *cli.Streams, o exportOptions) error {
	e := hrm.Export{Format: hrm.Format(o.format), Prefix: o.prefix, States: kernel.BFloat16}
	config := referenceConfig
	switch e.Format {
	case hrm.FormatReference:
	case hrm.FormatSafetensors:
		config, e.States = command.ConfigFile, kernel.Float32
		if !o.prefixGiven {
			e.Prefix = hrm.PlainPrefix
		}
	default:
		return cli.Usagef("--format is %q, expected reference or safetensors", o.format)
	}
	switch o.forwardDType {
	case "":
	case "bfloat16":
		e.States = kernel.BFloat16
	case "float32":
		e.States = kernel.Float32
	default:
		return cli.Usagef("--forward-dtype is %q, expected bfloat16 or float32", o.forwardDType)
	}
	if o.out == "" {
		return cli.Usagef("--out is missing: the file to write")
	}
	beside := filepath.Join(filepath.Dir(o.out), config)
	if filepath.Base(o.out) == config {
		return cli.Usagef("--out is %s, which is for the configuration; choose another name", o.out)
	}
	for path, kind := range map[string]files.Kind{o.out: exportedWeights, beside: exportedConfig} {
		if _, err := files.Check(path, kind, o.force, true); err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	ck, c, err := command.OpenTrained[hrm.TrainConfig](o.Trained, program, hrm.Kind)
	if err != nil {
		return err
	}
	defer ck.Close()
	if e.Format == hrm.FormatReference {
		if err := c.Arch.Referenced(); err != nil {
			return fmt.Errorf("export checkpoint %s: %w", ck.Dir(), err)
		}
	}
	progress := command.NewProgress(s)
	defer progress.End()
	progress.Doing("reading checkpoint " + ck.Dir())
	m, weights, err := hrm.LoadModel(ck, c.Arch, kernel.Float32, o.weights)
	if err != nil {
		return err
	}
	text, err := exportConfig(c, e, configPrefix+filepath.Base(o.out)+", written by "+cli.Writer(program))
	if err != nil {
		return err
	}
	if other := describedBy(beside, text); other != "" && other != filepath.Base(o.out) && !o.force {
		return cli.Usagef("export: %s says how %s is to be run, and %s is to be run in another way; choose another folder, or --force to replace it",
			beside, filepath.Join(filepath.Dir(o.out), other), o.out)
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	var rounded float64
	progress.Doing("writing " + o.out)
	err = files.Write(o.out, func(w io.Writer) (err error) {
		rounded, err = m.Export(w, e)
		return err
	})
	if err == nil {
		err = files.WriteFile(beside, text)
	}
	progress.End()
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	fmt.Fprintf(s.Out, "wrote %s: %d parameters", o.out, c.Arch.NumParams())
	if c.Arch.PuzzleEmbDim > 0 {
		fmt.Fprintf(s.Out, " and %d task embeddings", c.Arch.NumPuzzleIdentifiers)
	}
	fmt.Fprintf(s.Out, ", %s weights of step %d\nwrote %s\n", weights, ck.Step(), beside)
	if rounded > 0 {
		fmt.Fprintf(s.Out, "H_init and L_init are rounded to bfloat16, as the reference computes (by at most %.2g; --forward-dtype float32 keeps them)\n", rounded)
	}
	return nil
}

// configPrefix begins the comment of a configuration, before the name of the
// file of weights.
const configPrefix = hrm.Mark + ": configuration of "

// describedBy returns which file of weights, if it is still there, needs the
// configuration at path and could not be used with this one in its place; ""
// where there is none.
func describedBy(path string, text []byte) string {
	raw, err := files.Read(path, 1<<20)
	if err != nil {
		return ""
	}
	comment, body, _ := strings.Cut(string(raw), "\n")
	_, newBody, _ := strings.Cut(string(text), "\n")
	name, found := strings.CutPrefix(comment, "# "+configPrefix)
	name, _, _ = strings.Cut(name, ", written by ")
	if !found || body == newBody || filepath.Base(name) != name || !exists(filepath.Join(filepath.Dir(path), name)) {
		return ""
	}
	return name
}

// exportConfig is the configuration for whoever reads the weights.
func exportConfig(c hrm.TrainConfig, e hrm.Export, comment string) ([]byte, error) {
	var b bytes.Buffer
	if e.Format == hrm.FormatSafetensors {
		err := newTrainSettings().WriteYAML(&b, c, comment)
		return b.Bytes(), err
	}
	var err error
	if c.Arch.OneNetwork() {
		err = cli.NewSchema[trmRun]().WriteYAML(&b, newTRMRun(c, e), comment)
	} else {
		err = cli.NewSchema[referenceRun]().WriteYAML(&b, newReferenceRun(c, e), comment)
	}
	return b.Bytes(), err
}

// Files that hrm export wrote.
var (
	exportedWeights = files.Kind{Name: "file of weights that hrm export wrote", Is: func(path string) bool {
		if torchfile.Comment(path) == hrm.Mark {
			return true
		}
		f, err := safetensors.Open(path)
		if err != nil {
			return false
		}
		defer f.Close()
		return f.Metadata["program"] == hrm.Mark
	}}
	exportedConfig = files.Kind{Name: "configuration that hrm export wrote", Is: func(path string) bool {
		raw, err := files.Read(path, 1<<20)
		return err == nil && strings.HasPrefix(string(raw), "# "+hrm.Mark)
	}}
)
