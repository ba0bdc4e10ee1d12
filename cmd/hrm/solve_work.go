package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"deeploop/arc"
	"deeploop/hrm/solve"
	"deeploop/internal/cli"
	"deeploop/internal/files"
)

// solveFolder holds the finished tasks of runs of hrm solve, a folder for each
// combination of settings.
const solveFolder = "runs/solve"

// work keeps finished tasks: a file each, with a folder's settings beside.
type work struct{ dir string }

// workSettings are what answers depend on beside the task. Kernel and threads
// are not among them: they change roundings alone.
type workSettings struct {
	Version    int            `json:"version"` // of this form and of the method
	Settings   solve.Settings `json:"settings"`
	Checkpoint string         `json:"checkpoint,omitempty"` // digest
	Weights    string         `json:"weights,omitempty"`
}

const (
	workVersion  = 1
	settingsFile = "settings.json"
)

// openWork finds or makes the folder for these settings. A folder that the user
// names must have them.
func openWork(dir string, s solve.Settings, ck *solve.Checkpoint) (*work, error) {
	s.Train.Kernel, s.Train.Threads = "", 0
	w := workSettings{Version: workVersion, Settings: s}
	if ck != nil {
		digest, err := ck.Reader.Digest()
		if err != nil {
			return nil, err
		}
		w.Checkpoint, w.Weights = digest, ck.Weights
	}
	raw, err := json.MarshalIndent(w, "", " ")
	if err != nil {
		return nil, err
	}
	raw = append(raw, '\n')
	if dir == "" {
		sum := sha256.Sum256(raw)
		dir = filepath.Join(filepath.FromSlash(solveFolder), hex.EncodeToString(sum[:6]))
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, cli.Usagef("solve: --work %s is a file, expected a folder, or a name for a new one", dir)
	}
	path := filepath.Join(dir, settingsFile)
	old, err := os.ReadFile(path)
	switch {
	case err == nil && string(old) != string(raw):
		return nil, cli.Usagef("solve: %s holds tasks that were answered with other settings (see %s); choose another --work", dir, path)
	case err == nil:
		return &work{dir}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, cli.Usagef("solve: open work folder: %w", err)
	}
	if foreign(dir) {
		return nil, cli.Usagef("solve: %s is not empty and no work folder of hrm solve; choose another --work", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, cli.Usagef("solve: make work folder: %w; choose another --work", err)
	}
	if err := files.WriteFile(path, raw); err != nil {
		return nil, fmt.Errorf("solve: write work folder: %w", err)
	}
	return &work{dir}, nil
}

// foreign reports that a folder without settings holds something else than what
// another process is writing just now, or was when it was killed.
func foreign(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() != settingsFile && !strings.HasPrefix(e.Name(), files.TempPrefix)
	})
}

// keptTask is the file of a finished task.
type keptTask struct {
	Problem string         `json:"problem_sha256"`
	Answers *solve.Answers `json:"answers"`
}

// file is the name of a task's file, and the hash of what it shows a solver.
func (w *work) file(t *arc.Task) (path, sum string) {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", t.ID)
	for _, p := range t.Train {
		fmt.Fprintf(h, "%s %s\n", p.Input.AppendJSON(nil), p.Output.AppendJSON(nil))
	}
	for _, p := range t.Test {
		fmt.Fprintf(h, "%s\n", p.Input.AppendJSON(nil))
	}
	sum = hex.EncodeToString(h.Sum(nil))
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, t.ID)
	return filepath.Join(w.dir, fmt.Sprintf("%.40s-%.12s.json", name, sum)), sum
}

// load returns the answers of a finished task, nil where there are none, or
// none that can be read.
func (w *work) load(t *arc.Task) *solve.Answers {
	path, sum := w.file(t)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var k keptTask
	if json.Unmarshal(raw, &k) != nil || k.Problem != sum || k.Answers == nil || len(k.Answers.Tests) != len(t.Test) {
		return nil
	}
	k.Answers.ID = t.ID
	return k.Answers
}

// save keeps the answers of a finished task.
func (w *work) save(t *arc.Task, a *solve.Answers) error {
	path, sum := w.file(t)
	raw, err := json.Marshal(keptTask{sum, a})
	if err != nil {
		return err
	}
	if err := files.WriteFile(path, append(raw, '\n')); err != nil {
		return fmt.Errorf("solve: keep the answers of %s: %w", t.ID, err)
	}
	return nil
}
