package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"deeploop/internal/cli"
	"deeploop/internal/runlog"
)

// sweepStatus tells how the runs of a sweep are doing: what is finished, how
// long the rest may take, and the last line that each run has written.
type sweepStatus struct {
	p          *runlog.Progress
	each       time.Duration // a run is expected to take; 0: unknown
	parallel   int
	mu         sync.Mutex
	all, ended int
	running    []sweepRun
	took       time.Duration // all that were finished here
	tookOf     int
	stop, over chan struct{}
}

// sweepTick is how often logs are looked at.
const sweepTick = time.Second

func newSweepStatus(s *cli.Streams, all, finished, parallel int, each time.Duration) *sweepStatus {
	q := &sweepStatus{p: NewProgress(s), all: all, ended: finished, parallel: parallel, each: each, stop: make(chan struct{}), over: make(chan struct{})}
	q.p.Every, q.p.Memory = time.Minute, nil // the logs have more; the runs have the memory
	go func() {
		defer close(q.over)
		tick := time.NewTicker(sweepTick)
		defer tick.Stop()
		for {
			select {
			case <-q.stop:
				return
			case <-tick.C:
				q.p.Line(q.line)
			}
		}
	}()
	return q
}

// close removes the line.
func (q *sweepStatus) close() {
	close(q.stop)
	<-q.over
	q.p.Clear()
}

func (q *sweepStatus) begin(r sweepRun) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running = append(q.running, r)
}

// end takes a run off; took is 0 where it was not finished.
func (q *sweepStatus) end(r sweepRun, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.running {
		if q.running[i].dir == r.dir {
			q.running = append(q.running[:i], q.running[i+1:]...)
			break
		}
	}
	if took > 0 {
		q.ended, q.took, q.tookOf = q.ended+1, q.took+took, q.tookOf+1
	}
}

func (q *sweepStatus) line() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	parts := []string{fmt.Sprintf("%d/%d runs", q.ended, q.all)}
	each := q.each
	if q.tookOf > 0 {
		each = q.took / time.Duration(q.tookOf)
	}
	if left := q.all - q.ended; each > 0 && left > 0 {
		parts = append(parts, "about "+(each*time.Duration(left)/time.Duration(q.parallel)).Round(time.Second).String()+" left")
	}
	for _, r := range q.running {
		parts = append(parts, filepath.Base(r.dir)+": "+lastLine(r.dir+".log"))
	}
	return strings.Join(parts, "  ")
}

// atWork are the folders of the runs that are being trained.
func (q *sweepStatus) atWork() (dirs []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.running {
		dirs = append(dirs, r.dir)
	}
	return dirs
}

func goesOn(dirs []string) string {
	if len(dirs) == 1 {
		return dirs[0] + " goes on"
	}
	return strings.Join(dirs, ", ") + " go on"
}

// tailBytes is how much of a log's end is read for its last line.
const tailBytes = 4096

// lastLine is the last line of a log.
func lastLine(log string) string {
	lines := tail(log)
	return lines[len(lines)-1]
}

// lastMessage is what the program said last, in one line or several: why it
// ended.
func lastMessage(log, program string) string {
	lines := tail(log)
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], program+": ") {
			return strings.Join(lines[i:], "\n")
		}
	}
	return lines[len(lines)-1]
}

// tail are the last lines of a log, at least one.
func tail(log string) []string {
	f, err := os.Open(log)
	if err != nil {
		return []string{err.Error()}
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		_, err = f.Seek(-tailBytes, io.SeekEnd)
		if err != nil {
			return []string{err.Error()}
		}
	}
	raw, err := io.ReadAll(f)
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}
