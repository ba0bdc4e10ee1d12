package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/runlog"
)

// Names inside a run's folder.
const (
	MetricsFile  = "metrics.jsonl"
	SessionsFile = "sessions.jsonl"
)

// How says what to do with a folder that holds a run already.
type How uint8

// Ways to open a run's folder.
const (
	New     How = iota // refuse an existing run
	Resume             // continue it; start when it has no checkpoint
	Replace            // remove it when training starts (--force)
)

// Folder names a run's folder and how to open it.
type Folder struct {
	Dir string
	How How
	// Owned are further files and folders of a run that Replace removes, by
	// name: what other commands derive from its checkpoints.
	Owned []string
	// NewOnly says that the command can neither resume nor replace, for
	// messages.
	NewOnly bool
	Now     func() time.Time // the clock
}

// Run is an open run's folder, locked for this process.
type Run struct {
	folder Folder
	store  checkpoint.Store
	lock   *checkpoint.Lock
	from   *checkpoint.Reader // what to resume from, until it is loaded; nil starts from the beginning
	log    *runlog.Log
	made   bool // Open made the folder
}

// Open locks the folder, making it if necessary. It refuses a folder that is
// not empty unless told to resume or replace, and one that another process
// uses. Nothing is removed before Train but leftovers of interrupted saves.
func Open(f Folder) (*Run, error) {
	_, err := os.Stat(f.Dir)
	made := errors.Is(err, os.ErrNotExist)
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		return nil, cli.Usagef("make run folder: %w; choose another --run", err)
	}
	lock, err := checkpoint.Acquire(f.Dir, f.Now())
	if err != nil {
		return nil, err
	}
	r := &Run{folder: f, made: made, lock: lock, store: checkpoint.Store{Dir: filepath.Join(f.Dir, checkpoint.Folder)}}
	if err := r.inspect(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Run) inspect() error {
	switch r.folder.How {
	case Replace:
		return r.refuseForeign()
	case New:
		return r.refuseExisting()
	}
	if err := r.store.Clean(); err != nil {
		return err
	}
	var err error
	if r.from, err = r.store.OpenLast(); err != nil || r.from != nil {
		return err
	}
	return r.refuseForeignMetrics()
}

func (r *Run) refuseExisting() error {
	entries, err := os.ReadDir(r.folder.Dir)
	if err != nil {
		return fmt.Errorf("read run folder: %w", err)
	}
	for _, e := range entries {
		if e.Name() == checkpoint.LockFile {
			continue
		}
		if r.folder.NewOnly {
			return cli.Usagef("run folder %s exists already and is not empty (it has %s); choose another --run", r.folder.Dir, e.Name())
		}
		if !r.holdsRun() {
			return r.foreign(e.Name())
		}
		at := "it has no checkpoint"
		if x, err := r.store.Index(); err == nil && x.Last != nil {
			at = fmt.Sprintf("its last checkpoint is at step %d", x.Last.Step)
		}
		return cli.Usagef("run folder %s exists already and is not empty (%s); continue the run with --resume, replace it with --force, or choose another --run",
			r.folder.Dir, at)
	}
	return nil
}

// Checkpoint returns the checkpoint to resume from, nil when training starts
// from the beginning. Train loads and closes it.
func (r *Run) Checkpoint() *checkpoint.Reader { return r.from }

// Close releases the folder. The run can be continued later.
func (r *Run) Close() error {
	var errs []error
	if r.from != nil {
		errs = append(errs, r.from.Close())
		r.from = nil
	}
	if r.log != nil {
		errs = append(errs, r.log.Close())
		r.log = nil
	}
	if r.lock != nil {
		errs = append(errs, r.lock.Release())
		r.lock = nil
	}
	return errors.Join(errs...)
}

func (r *Run) path(name string) string { return filepath.Join(r.folder.Dir, name) }

// clear removes what an earlier run left in the folder, and nothing else.
func (r *Run) clear() error {
	if err := r.store.Clear(); err != nil {
		return fmt.Errorf("replace run: %w", err)
	}
	for _, n := range append([]string{MetricsFile, SessionsFile}, r.folder.Owned...) {
		if err := os.RemoveAll(r.path(n)); err != nil {
			return fmt.Errorf("replace run: %w", err)
		}
	}
	return nil
}
