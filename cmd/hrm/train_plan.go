package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"deeploop/augment"
	"deeploop/hrm"
	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/train"
)

// configFile is the resolved configuration inside a run's folder.
const configFile = "config.yaml"

// trainOptions are the flags of hrm train.
type trainOptions struct {
	settings            *cli.Settings[hrm.TrainConfig]
	preset, run         string
	resume, force       bool
	stopAfter           int
	minutes             float64
	resetTaskEmbeddings bool
	profile, quiet      bool

	presetGiven, stepsGiven, epochsGiven bool
}

func (o *trainOptions) addFlags(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&o.preset, "preset", hrm.DefaultPreset, "configuration to start from: "+strings.Join(hrm.Presets(), ", "))
	fs.StringVar(&o.run, "run", "", "run folder `DIR` (default a new one below runs/; with --resume the newest)")
	fs.BoolVar(&o.resume, "resume", false, "continue the run; one that has no checkpoint starts from the beginning")
	fs.BoolVar(&o.force, "force", false, "replace the run")
	fs.IntVar(&o.stopAfter, "stop-after", 0, "save and stop after `N` more steps; the schedule stays as long as it is")
	fs.Float64Var(&o.minutes, "minutes", 0, "save, evaluate and stop after `M` minutes, if the schedule has not ended by then")
	fs.BoolVar(&o.resetTaskEmbeddings, "reset-task-embeddings", false, "resume on a dataset with other identifiers or rows: task embeddings, place in the data and best checkpoint start afresh")
	fs.BoolVar(&o.profile, "profile", false, profileHelp+"; also in "+profileFile+" in the run's folder")
	fs.BoolVar(&o.quiet, "quiet", false, "only warnings")
	o.settings.AddFlags(fs)
}

// given notes which flags the command line has.
func (o *trainOptions) given(fs *pflag.FlagSet) {
	o.presetGiven, o.stepsGiven, o.epochsGiven = fs.Changed("preset"), fs.Changed("steps"), fs.Changed("epochs")
}

// trainPlan is what a command line comes to, before anything is opened.
type trainPlan struct {
	config hrm.TrainConfig
	run    string // folder
	how    train.How
	chosen func(key string) bool
	yaml   []byte // config, for the run's folder
	repeat string // command that repeats the run

	repeatArgs []string // the same, without the program
	goOn       string   // command that continues it
}

// planTrain resolves the configuration, preset < file < command line, and the
// folders. A resumed run starts from its own configuration unless a preset is
// named.
func planTrain(o trainOptions, now time.Time) (*trainPlan, error) {
	switch {
	case o.resume && o.force:
		return nil, cli.Usagef("--resume and --force: choose one, to continue the run or to replace it")
	case !(o.minutes >= 0 && o.minutes <= 1e6):
		return nil, cli.Usagef("--minutes is %v, expected a number of minutes", o.minutes)
	case o.stopAfter < 0:
		return nil, cli.Usagef("--stop-after is %d, expected a number of steps", o.stopAfter)
	}
	p := &trainPlan{run: o.run}
	base, err := hrm.Preset(o.preset)
	if err != nil {
		return nil, err
	}
	if o.resume {
		p.how = train.Resume
		if err := p.resumeFrom(o, &base); err != nil {
			return nil, err
		}
	} else if o.force {
		p.how = train.Replace
	}
	r, err := o.settings.Resolve(base)
	if err != nil {
		return nil, err
	}
	p.config, p.chosen = r.Value, r.Chosen
	if o.epochsGiven && !o.stepsGiven { // a flag is stronger than a file's steps
		p.config.Steps = 0
	}
	if err := r.Explain(p.config.Validate()); err != nil {
		return nil, err
	}
	if p.run == "" {
		if p.run, err = newRunFolder(o.preset, now); err != nil {
			return nil, err
		}
	}
	if p.config.DataPath == "" {
		if p.config.DataPath, err = newestFolder(dataFolder, augment.ManifestName); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// resumeFrom finds the run to continue and takes its configuration as base.
func (p *trainPlan) resumeFrom(o trainOptions, base *hrm.TrainConfig) error {
	if p.run == "" {
		var err error
		if p.run, err = newestFolder(runsFolder, train.MetricsFile); err != nil {
			return err
		}
		if p.run == "" {
			return cli.Usagef("resume: no run below %s/; start one with hrm train, or name its folder with --run", runsFolder)
		}
	}
	if o.presetGiven {
		return nil
	}
	return storedConfig(o.settings, p.run, base)
}

// storedConfig reads the configuration of a run: that of its last checkpoint,
// or config.yaml where there is none yet. Without both it leaves into alone.
func storedConfig(s *cli.Settings[hrm.TrainConfig], run string, into *hrm.TrainConfig) error {
	store := checkpoint.Store{Dir: filepath.Join(run, checkpoint.Folder)}
	ck, err := store.OpenLast()
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	if ck != nil {
		defer ck.Close()
		*into, err = hrm.CheckpointConfig(ck)
		return err
	}
	path := filepath.Join(run, configFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.Load(path, into)
}

// describe fills in the texts that need the final configuration.
func (p *trainPlan) describe(o trainOptions) error {
	base, err := hrm.Preset(o.preset)
	if err != nil {
		return err
	}
	p.repeatArgs = append([]string{"train", "--preset=" + o.preset}, o.settings.Args(p.config, base)...)
	p.repeat = cli.ShellLine(append([]string{"hrm"}, p.repeatArgs...)...)
	p.goOn = cli.ShellLine("hrm", "train", "--run", p.run, "--resume")
	var b strings.Builder
	comment := "Resolved configuration of this run. This repeats it:\n" + p.repeat
	if err := o.settings.WriteYAML(&b, p.config, comment); err != nil {
		return err
	}
	p.yaml = []byte(b.String())
	return nil
}
