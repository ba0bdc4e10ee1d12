package command

import (
	"time"

	"deeploop/internal/cli"
	"deeploop/internal/runlog"
)

// NewProgress shows a run on the error stream, with these metrics. Defer its
// End.
func NewProgress(s *cli.Streams, items ...runlog.Item) *runlog.Progress {
	p := &runlog.Progress{
		W: s.Err, Terminal: cli.IsTerminal(s.Err) && !s.JSON(), Quiet: s.Quiet(), Now: time.Now, Memory: runlog.ResidentBytes,
		Items: items, Log: s.Log(),
	}
	if p.Terminal {
		p.Width = func() int { return cli.Width(s.Err) }
		s.OnLine(p.Clear)
	}
	return p
}
