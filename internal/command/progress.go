package command

import (
	"time"

	"deeploop/internal/cli"
	"deeploop/internal/runlog"
)

// NewProgress shows a run on the error stream, with these metrics.
func NewProgress(s *cli.Streams, quiet bool, items ...runlog.Item) *runlog.Progress {
	return &runlog.Progress{
		W: s.Err, Terminal: cli.IsTerminal(s.Err), Quiet: quiet, Now: time.Now, Memory: runlog.ResidentBytes,
		Items: items,
	}
}
