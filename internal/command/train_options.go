package command

import (
	"strings"

	"github.com/spf13/pflag"

	"deeploop/internal/cli"
)

// TrainOptions are the flags of a command train: how to treat the run, and
// its configuration T.
type TrainOptions[T any] struct {
	Settings      *cli.Settings[T]
	Preset, Run   string
	Resume, Force bool
	StopAfter     int
	Minutes       float64
	Profile       bool
	TensorBoard   string
	flags         *pflag.FlagSet
}

// AddFlags registers the flags of the run; those of the configuration are
// Settings.AddFlags's, after the program's own.
func (o *TrainOptions[T]) AddFlags(fs *pflag.FlagSet, presets []string, preset string) {
	fs.SortFlags = false
	fs.StringVar(&o.Preset, "preset", preset, "configuration to start from: "+strings.Join(presets, ", "))
	fs.StringVar(&o.Run, "run", "", "run folder `DIR` (default a new one below runs/; with --resume the newest)")
	fs.BoolVar(&o.Resume, "resume", false, "continue the run; one that has no checkpoint starts from the beginning")
	fs.BoolVar(&o.Force, "force", false, "replace the run")
	fs.IntVar(&o.StopAfter, "stop-after", 0, "save and stop after `N` more steps; the schedule stays as long as it is")
	fs.Float64Var(&o.Minutes, "minutes", 0, "save, evaluate and stop after `M` minutes, if the schedule has not ended by then")
	fs.BoolVar(&o.Profile, "profile", false, ProfileHelp+"; also in "+ProfileFile+" in the run's folder")
	fs.StringVar(&o.TensorBoard, "tensorboard", "", "also write the metrics as event files below this `DIR`, for tensorboard --logdir DIR")
	o.flags = fs
}

// Given reports whether the command line has a flag.
func (o *TrainOptions[T]) Given(flag string) bool { return o.flags.Changed(flag) }

func (o *TrainOptions[T]) check() error {
	switch {
	case o.Resume && o.Force:
		return cli.Usagef("--resume and --force: choose one, to continue the run or to replace it")
	case !(o.Minutes >= 0 && o.Minutes <= 1e6):
		return cli.Usagef("--minutes is %v, expected a number of minutes", o.Minutes)
	case o.StopAfter < 0:
		return cli.Usagef("--stop-after is %d, expected a number of steps", o.StopAfter)
	}
	return nil
}
