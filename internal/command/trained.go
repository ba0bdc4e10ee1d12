package command

import (
	"github.com/spf13/pflag"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/train"
)

// Trained are the flags that say which trained model a command takes: the best
// checkpoint of the newest run where they name no other.
type Trained struct {
	Run, Checkpoint string
	Last            bool
}

// AddFlags registers the flags. use is what the command does with a model, as
// in "evaluate".
func (t *Trained) AddFlags(f *pflag.FlagSet, use string) {
	f.StringVar(&t.Run, "run", "", "run folder `DIR` (default the newest below "+RunsFolder+"/)")
	f.StringVar(&t.Checkpoint, "checkpoint", "", use+" this checkpoint `FILE` or folder instead of a run's best")
	f.BoolVar(&t.Last, "last", false, "the run's last checkpoint, not its best")
}

// OpenTrained opens the checkpoint that the flags choose, with the
// configuration C it was trained with. A model of another kind is an error;
// program trains those of this one.
func OpenTrained[C any](t Trained, program, kind string) (*checkpoint.Reader, C, error) {
	var c C
	if t.Run != "" && t.Checkpoint != "" {
		return nil, c, cli.Usagef("--run and --checkpoint: choose one")
	}
	var args []string
	if path := t.Run + t.Checkpoint; path != "" {
		args = []string{path}
	}
	path, err := RunOrNewest(program, kind, args, NewestRun)
	if err != nil {
		return nil, c, err
	}
	which := checkpoint.BestSaved
	if t.Last {
		which = checkpoint.LastSaved
	}
	ck, err := checkpoint.OpenFound(path, which)
	if err == nil {
		if c, err = train.StoredConfig[C](ck, kind); err != nil {
			ck.Close()
		}
	}
	if err != nil {
		return nil, c, Instead(err, "find checkpoint", path, RunOf(kind))
	}
	return ck, c, nil
}
