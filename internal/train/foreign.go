package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/runlog"
	"deeploop/internal/wording"
)

// holdsRun reports whether the folder shows that a training of ours wrote it:
// metrics, sessions or checkpoints that can be read. Names alone prove
// nothing.
func (r *Run) holdsRun() bool {
	return runlog.Holds(r.path(MetricsFile)) || runlog.HoldsSessions(r.path(SessionsFile)) || r.store.Holds()
}

// refuseForeign keeps --force away from folders that hold something else than
// a run.
func (r *Run) refuseForeign() error {
	entries, err := os.ReadDir(r.folder.Dir)
	if err != nil {
		return fmt.Errorf("read run folder: %w", err)
	}
	other := ""
	for _, e := range entries {
		if e.Name() != checkpoint.LockFile {
			other = e.Name()
		}
	}
	if other == "" || r.holdsRun() {
		return nil
	}
	return r.foreign(other)
}

// foreign says that the folder holds something else, a file of that name.
func (r *Run) foreign(other string) error {
	return cli.Usagef("run folder %s is not empty and holds no run (it has %s, but no %s, %s or checkpoints of a training); choose another --run, or empty it yourself",
		r.folder.Dir, other, MetricsFile, SessionsFile)
}

// refuseForeignMetrics keeps a run that starts from the beginning from
// overwriting metrics of something else.
func (r *Run) refuseForeignMetrics() error {
	st, err := os.Stat(r.path(MetricsFile))
	if errors.Is(err, os.ErrNotExist) || err == nil && st.Mode().IsRegular() && st.Size() == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read run folder: %w", err)
	}
	if r.holdsRun() {
		return nil
	}
	return cli.Usagef("run folder %s holds no run, but its %s would be overwritten, which is not of a training; choose another --run, or move the file",
		r.folder.Dir, MetricsFile)
}

// near names a folder beside a run folder that did not exist, for the case
// that its name was mistyped.
func (r *Run) near() string {
	parent, base := filepath.Split(filepath.Clean(r.folder.Dir))
	if parent == "" {
		parent = "."
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != base {
			names = append(names, e.Name())
		}
	}
	if near := wording.Nearest(base, names); near != "" {
		return fmt.Sprintf(" (there is %s)", filepath.Join(parent, near))
	}
	return ""
}
