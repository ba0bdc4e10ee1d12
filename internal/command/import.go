package command

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"deeploop/internal/checkpoint"
	"deeploop/internal/train"
)

// Imported is a model from elsewhere that becomes a run: a configuration and
// one checkpoint, of weights alone.
type Imported struct {
	Run    string          // folder to make
	Step   int             // of the checkpoint
	Meta   checkpoint.Meta // of the checkpoint
	State  *checkpoint.Set // the weights
	Config []byte          // what ConfigFile has
}

// Save makes the run and returns the folder of its checkpoint. A folder that
// holds anything is an error of the caller's. When it fails, nothing is left of
// what it made.
func (i Imported) Save() (where string, err error) {
	made := MissingFolders(i.Run)
	defer func() {
		if err != nil {
			RemoveEmpty(made)
		}
	}()
	run, err := train.Open(train.Folder{Dir: i.Run, How: train.New, NewOnly: true, Now: time.Now})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, run.Close()) }() // before the folder is removed: the lock is in it
	store := checkpoint.Store{Dir: filepath.Join(i.Run, checkpoint.Folder)}
	config := filepath.Join(i.Run, ConfigFile)
	ref, err := store.Save(i.Step, i.Meta, i.State)
	if err == nil {
		err = checkpoint.WriteFile(config, i.Config)
	}
	if err != nil {
		_ = os.Remove(config)                      // where it was not made there is none
		return "", errors.Join(err, store.Clear()) // the folder was empty: all of it is ours
	}
	return store.Path(ref), nil
}
