package command

import (
	"fmt"
	"path/filepath"
	"time"

	"deeploop/internal/cli"
	"deeploop/internal/tensorboard"
	"deeploop/internal/train"
)

// openEvents prepares the event files of a run below the folder of
// --tensorboard; nil without it.
func openEvents[T any](s *cli.Streams, dir string, p *Plan[T]) (*tensorboard.Writer, error) {
	if dir == "" {
		return nil, nil
	}
	name, err := eventsName(p.Run)
	if err != nil {
		return nil, err
	}
	w, err := tensorboard.Open(dir, name, time.Now)
	if err != nil {
		return nil, fmt.Errorf("--tensorboard: %w", err)
	}
	if p.How == train.New && w.Holds() {
		s.Warnf("%s has event files of another run called so; TensorBoard shows the newest", w.Dir)
	}
	return w, nil
}

// eventsName is what TensorBoard calls a run: its folder's path below runs/, or
// else its folder's name.
func eventsName(run string) (string, error) {
	if rel, err := filepath.Rel(RunsFolder, run); err == nil && rel != "." && filepath.IsLocal(rel) {
		return rel, nil
	}
	abs, err := filepath.Abs(run)
	if err != nil {
		return "", fmt.Errorf("--tensorboard: %w", err)
	}
	return filepath.Base(abs), nil
}
