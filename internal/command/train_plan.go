package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/train"
)

// ConfigFile is the resolved configuration inside a run's folder.
const ConfigFile = "config.yaml"

// Plan is what a command line comes to, before anything is opened.
type Plan[T any] struct {
	Config T
	Run    string // folder
	How    train.How
	Chosen func(key string) bool // by a file or the command line
	YAML   []byte                // Config, for the run's folder
	Repeat string                // command that repeats the run

	RepeatArgs []string // the same, without the program
	Continue   string   // command that continues it
}

// Plan resolves the configuration, preset < file < command line, and the
// folders. A resumed run starts from its own configuration unless a preset is
// named. now names a new run.
func (t *Training[T]) Plan(o *TrainOptions[T], now time.Time) (*Plan[T], error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	p := &Plan[T]{Run: o.Run}
	base, err := t.Preset(o.Preset)
	if err != nil {
		return nil, err
	}
	if o.Resume {
		p.How = train.Resume
		if err := t.resumeFrom(p, o, &base); err != nil {
			return nil, err
		}
	} else if o.Force {
		p.How = train.Replace
	}
	r, err := o.Settings.Resolve(base)
	if err != nil {
		return nil, err
	}
	p.Config, p.Chosen = r.Value, r.Chosen
	if t.Adjust != nil {
		t.Adjust(&p.Config, o.Given)
	}
	if err := r.Explain(p.Config.Validate()); err != nil {
		return nil, err
	}
	if p.Run == "" {
		if p.Run, err = NewRunFolder(o.Preset, now); err != nil {
			return nil, err
		}
	}
	if data := t.Keys(&p.Config).DataPath; *data == "" {
		if *data, err = NewestFolder(DataFolder, t.DataMarker, t.IsData); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// resumeFrom finds the run to continue and takes its configuration as base.
func (t *Training[T]) resumeFrom(p *Plan[T], o *TrainOptions[T], base *T) error {
	if p.Run == "" {
		var err error
		if p.Run, err = NewestTraining(t.Kind); err != nil {
			return err
		}
		if p.Run == "" {
			return cli.Usagef("resume: no run below %s/; start one with %s train, or name its folder with --run", RunsFolder, t.Program)
		}
	}
	if o.Given("preset") {
		return nil
	}
	return t.storedConfig(o.Settings, p.Run, base)
}

// storedConfig reads the configuration of a run: that of its last checkpoint,
// or the file where there is none yet. Without both it leaves into alone.
func (t *Training[T]) storedConfig(s *cli.Settings[T], run string, into *T) error {
	store := checkpoint.Store{Dir: filepath.Join(run, checkpoint.Folder)}
	ck, err := store.OpenLast()
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	if ck != nil {
		defer ck.Close()
		*into, err = t.Stored(ck)
		return Instead(err, "resume", run, RunOf(t.Kind))
	}
	path := filepath.Join(run, ConfigFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.Load(path, into)
}

// Describe fills in the texts that need the final configuration.
func (t *Training[T]) Describe(p *Plan[T], o *TrainOptions[T]) error {
	base, err := t.Preset(o.Preset)
	if err != nil {
		return err
	}
	p.RepeatArgs = append([]string{"train", "--preset=" + o.Preset}, o.Settings.Args(p.Config, base)...)
	p.Repeat = cli.ShellLine(append([]string{t.Program}, p.RepeatArgs...)...)
	continued := []string{t.Program, "train", "--run", p.Run, "--resume"}
	if o.TensorBoard != "" {
		continued = append(continued, "--tensorboard", o.TensorBoard)
	}
	p.Continue = cli.ShellLine(continued...)
	var b strings.Builder
	comment := "Resolved configuration of this run. This repeats it:\n" + p.Repeat
	if err := o.Settings.WriteYAML(&b, p.Config, comment); err != nil {
		return err
	}
	p.YAML = []byte(b.String())
	return nil
}
