package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"deeploop/arc"
	"deeploop/hrm/solve"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/runlog"
)

// solveProgress tells on the error stream how tasks are doing. Several tasks
// may report at a time.
type solveProgress struct {
	mu    sync.Mutex
	p     *runlog.Progress
	total int
	done  int
	order []string          // tasks at work, as they began
	now   map[string]string // what each of them is doing
	begun map[string]time.Time
	end   time.Time // when all is done at the latest; zero: unknown
}

func newSolveProgress(s *cli.Streams, total int) *solveProgress {
	return &solveProgress{p: command.NewProgress(s), total: total, now: map[string]string{}, begun: map[string]time.Time{}}
}

// expect says how many tasks are left, so many at a time, for so long each (0:
// unknown).
func (q *solveProgress) expect(left, parallel int, limit time.Duration) {
	if limit > 0 {
		q.end = time.Now().Add(time.Duration((left+parallel-1)/parallel) * limit)
	}
}

// at takes note of a task's state.
func (q *solveProgress) at(id string, s solve.State) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.now[id]; !known {
		q.order = append(q.order, id)
		q.begun[id] = time.Now()
	}
	if s.Due > 0 {
		q.now[id] = fmt.Sprintf("%s: %d of %d votes", arc.Printable(id), s.Voted, s.Due)
	} else {
		pace := ""
		if taken := time.Since(q.begun[id]); taken > time.Second && s.Step > 0 && s.Progress > 0 {
			pace = fmt.Sprintf(", %.3g steps/s, ETA %s", float64(s.Step)/taken.Seconds(), time.Duration(float64(taken)*(1/s.Progress-1)).Round(time.Second))
		}
		q.now[id] = fmt.Sprintf("%s: step %d (%.0f%%%s), loss %.3g", arc.Printable(id), s.Step, 100*s.Progress, pace, s.Loss)
		if s.Halted {
			q.now[id] += fmt.Sprintf(", cells %.1f%%, grids %.0f%%", 100*s.Cells, 100*s.Exact)
		}
	}
	q.p.Line(q.line)
}

// shownTasks is how many tasks a line tells about.
const shownTasks = 2

func (q *solveProgress) line() string {
	var parts []string
	if q.total > 1 {
		parts = append(parts, fmt.Sprintf("%d/%d tasks", q.done, q.total))
	}
	for i, id := range q.order {
		if i == shownTasks {
			parts = append(parts, fmt.Sprintf("%d more", len(q.order)-i))
			break
		}
		parts = append(parts, q.now[id])
	}
	if left := time.Until(q.end); !q.end.IsZero() && left > 0 {
		parts = append(parts, "at most "+left.Round(time.Second).String()+" left")
	}
	return strings.Join(parts, "  ")
}

// finished takes a task off, and what stands on the terminal, so that its
// answers can be printed.
func (q *solveProgress) finished(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done++
	delete(q.now, id)
	q.order = slices.DeleteFunc(q.order, func(x string) bool { return x == id })
	q.p.Clear()
}

func (q *solveProgress) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.p.Clear()
	q.p.End()
}
