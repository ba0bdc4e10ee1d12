package tensorboard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deeploop/internal/files"
	"deeploop/internal/runlog"
)

// filePrefix begins the names of event files. TensorBoard goes by the middle
// part and reads files in the order of their names, so the time comes next.
const filePrefix = "events.out.tfevents."

// Writer writes the metrics of one run. It is a train.Follower.
type Writer struct {
	Dir string // folder of the run's event files
	now func() time.Time
	f   *os.File
}

// Open checks, before any work, that event files can be written to the folder
// of a run below logdir. Nothing is made before Begin.
func Open(logdir, run string, now func() time.Time) (*Writer, error) {
	dir := filepath.Join(logdir, run)
	for _, d := range []string{logdir, dir} {
		if info, err := os.Stat(d); err == nil && !info.IsDir() {
			return nil, &files.Error{Path: d, Problem: "is a file, expected a folder for event files"}
		}
	}
	if _, err := files.Check(filepath.Join(dir, "events"), files.Kind{}, true, true); err != nil {
		return nil, err
	}
	return &Writer{Dir: dir, now: now}, nil
}

// Holds reports whether the folder has event files already.
func (w *Writer) Holds() bool {
	entries, err := os.ReadDir(w.Dir)
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), filePrefix) })
}

// Begin starts a file for a session that goes on after this step. What earlier
// files have of that step and later ones is void, and lines, the metrics so far,
// are written where they are missing then: all of them into a folder without
// event files.
func (w *Writer) Begin(step int, lines []runlog.Line) error {
	if !w.Holds() {
		step = 0
	}
	if err := w.create(); err != nil {
		return err
	}
	wall := w.wallTime()
	if err := w.write(versionEvent(wall), startEvent(wall, step)); err != nil {
		return err
	}
	for _, l := range lines {
		if l.Step >= step {
			if err := w.Line(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// create makes a file whose name comes after those of earlier sessions.
func (w *Writer) create() error {
	if err := os.MkdirAll(w.Dir, 0o755); err != nil {
		return fmt.Errorf("write event files: %w", err)
	}
	second := w.now().Unix()
	for {
		name := fmt.Sprintf("%s%010d.deeploop.%d", filePrefix, second, os.Getpid())
		f, err := os.OpenFile(filepath.Join(w.Dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) { // a session less than a second ago
			second++
			continue
		}
		if err != nil {
			return fmt.Errorf("write event files: %w", err)
		}
		w.f = f
		return nil
	}
}

func (w *Writer) wallTime() float64 { return float64(w.now().UnixNano()) / 1e9 }

// Line writes the metrics of a line, so that a reader sees them at once.
func (w *Writer) Line(l runlog.Line) error { return w.write(scalarsEvent(w.wallTime(), l)) }

func (w *Writer) write(events ...[]byte) error {
	var b []byte
	for _, e := range events {
		b = appendRecord(b, e)
	}
	if _, err := w.f.Write(b); err != nil { // whole records, unless the disk is full
		return fmt.Errorf("write event files: %w", err)
	}
	return nil
}

// Close ends the file. It does nothing before Begin.
func (w *Writer) Close() error {
	if w.f == nil {
		return nil
	}
	return w.f.Close()
}
