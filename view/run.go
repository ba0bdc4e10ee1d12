package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"deeploop/internal/runlog"
	"deeploop/internal/train"
)

// openFollower brings the curves of an item up to date and calls use with
// them.
func (it *item) openFollower(use func(f *follower)) error {
	it.mu.Lock()
	if it.follow == nil {
		it.follow = newFollower(filepath.Join(it.Path, train.MetricsFile))
	}
	f := it.follow
	it.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.update(); err != nil {
		return err
	}
	use(f)
	return nil
}

// curves sends metrics of a run, all of them by name, or only that nothing is
// new since the version that the page has.
func (s *Server) curves(r *http.Request) (any, error) {
	it, err := s.items.of(r, KindRun)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	wanted := q["metric"]
	var out any
	err = it.openFollower(func(f *follower) {
		if q.Get("since") == f.version() {
			out = map[string]any{"version": f.version(), "same": true}
			return
		}
		curves := map[string]map[string]curve{}
		for event, all := range f.metrics {
			curves[event] = map[string]curve{}
			for _, name := range wanted {
				if m := all[name]; m != nil {
					curves[event][name] = m.curve()
				}
			}
		}
		out = map[string]any{"version": f.version(), "step": f.step, "curves": curves}
	})
	return out, err
}

// runView is what is known of a run besides its curves.
type runView struct {
	Name     string              `json:"name"`
	Path     string              `json:"path"`
	Step     int                 `json:"step"`
	Metrics  map[string][]string `json:"metrics"` // by event
	Quiet    *float64            `json:"quiet"`   // seconds since the last line; null where there is none
	Sessions []runlog.Session    `json:"sessions"`
	Config   string              `json:"config"` // config.yaml
}

// maxShown bounds how much of a run's text files is sent.
const maxShown = 64 << 10

func (s *Server) oneRun(r *http.Request) (any, error) {
	it, err := s.items.of(r, KindRun)
	if err != nil {
		return nil, err
	}
	v := runView{Name: it.Name, Path: it.Path, Metrics: map[string][]string{}, Sessions: []runlog.Session{}}
	err = it.openFollower(func(f *follower) {
		v.Step = f.step
		for event, all := range f.metrics {
			v.Metrics[event] = slices.Sorted(maps.Keys(all))
		}
	})
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(filepath.Join(it.Path, train.MetricsFile)); err == nil {
		quiet := math.Round(max(0, s.Now().Sub(info.ModTime()).Seconds())*10) / 10
		v.Quiet = &quiet
	}
	sessions, err := last(filepath.Join(it.Path, train.SessionsFile), maxShown)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(sessions) {
		var session runlog.Session
		if json.Unmarshal(line, &session) == nil && session.Event != "" { // the first may be cut
			v.Sessions = append(v.Sessions, session)
		}
	}
	if n := len(v.Sessions); n > 20 {
		v.Sessions = v.Sessions[n-20:]
	}
	config, err := last(filepath.Join(it.Path, "config.yaml"), maxShown)
	v.Config = string(config)
	return v, err
}

// last reads the end of a file; one that is not there is empty.
func last(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	if extra := info.Size() - most; extra > 0 {
		if _, err := f.Seek(extra, io.SeekStart); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, most))
}
