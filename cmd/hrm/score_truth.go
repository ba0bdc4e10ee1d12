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
	"strings"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/files"
	"deeploop/voting"
)

// copies says which task and augmentation each identifier stands for. It is a
// voting.Augmentations.
type copies struct {
	task []int32 // by identifier; -1 = none
	augs []augment.Augmentation
}

func (c *copies) set(id int32, task int, a augment.Augmentation) {
	for int(id) >= len(c.task) {
		c.task = append(c.task, -1)
		c.augs = append(c.augs, augment.Augmentation{})
	}
	c.task[id], c.augs[id] = int32(task), a
}

// Task returns the task of an identifier, -1 for none.
func (c *copies) Task(id int32) int {
	if id < 0 || int(id) >= len(c.task) {
		return -1
	}
	return int(c.task[id])
}

// Undo takes an augmented grid back.
func (c *copies) Undo(id int32, g arc.Grid) arc.Grid {
	if c.augs[id] == augment.Original() {
		return g
	}
	return c.augs[id].Undo(g)
}

// testSet is the held-out part of a dataset folder.
type testSet struct {
	dir    string
	hash   string // of the whole dataset
	tasks  []arc.Task
	copies *copies
	// merged says that tasks with one name became one, as in the reference:
	// test indices of the predictions then do not tell which test input is
	// meant, only the inputs do.
	merged bool
}

// openTestSet reads the ground truth of a dataset folder that build-data made,
// and checks it against the folder's manifest.
func openTestSet(dir string) (*testSet, error) {
	m, err := augment.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, augment.TestPuzzlesName)
	if err := matchesManifest(path, m.Files[augment.TestPuzzlesName].SHA256); err != nil {
		return nil, err
	}
	p, err := augment.ReadTestPuzzles(path)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	t := &testSet{dir: dir, hash: m.DatasetHash, copies: &copies{}}
	place := map[string]int{}
	for _, task := range p.Tasks {
		at, ok := place[task.ID]
		if !ok {
			at = len(t.tasks)
			place[task.ID] = at
			t.tasks = append(t.tasks, arc.Task{ID: task.ID, File: dir, Split: task.Split})
		}
		t.merged = t.merged || ok
		t.tasks[at].Test = append(t.tasks[at].Test, task.Tests...)
		for k, id := range task.Identifiers {
			if id < 1 || int(id) >= m.Counts.Identifiers {
				return nil, cli.Usagef("read %s: task %q has identifier %d, expected 1 to %d; build the dataset again", path, task.ID, id, m.Counts.Identifiers-1)
			}
			t.copies.set(id, at, task.Augmentations[k])
		}
	}
	return t, nil
}

func matchesManifest(path, want string) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("read dataset: %s is missing; build the dataset again", path)
	}
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	if got := hex.EncodeToString(sum[:]); got != want {
		return cli.Usagef("read dataset: %s was changed since it was built (sha256 %s, manifest %s); build the dataset again", path, got, want)
	}
	return nil
}

// identifiersFile returns the identifiers.json meant by --data where there is
// no manifest: a dataset of the reference builder, or the file itself.
func identifiersFile(data string) (string, bool) {
	info, err := os.Stat(data)
	if err != nil {
		return "", false
	}
	if !info.IsDir() {
		return data, true
	}
	if _, err := os.Stat(filepath.Join(data, augment.ManifestName)); err == nil {
		return "", false
	}
	file := filepath.Join(data, "identifiers.json")
	_, err = os.Stat(file)
	return file, err == nil
}

// readNames reads an identifiers.json, a list of names with "<blank>" first.
// What ends like an augmentation is one only if the list also has the task
// itself, so that task names may have any form.
func readNames(path string) ([]voting.Name, []augment.Augmentation, error) {
	raw, err := files.Read(path, arc.MaxCombinedFile)
	if err != nil {
		return nil, nil, fmt.Errorf("read identifiers: %w", err)
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, nil, cli.Usagef("read identifiers %s: found no list of names, expected [\"<blank>\", \"TASK\", \"TASK_t0_0123456789\", ...]", path)
	}
	known := make(map[string]bool, len(list))
	for i, n := range list {
		if err := arc.CheckID(n); err != nil {
			return nil, nil, cli.Usagef("read identifiers %s: entry %d (%.60q) %w", path, i, n, err)
		}
		known[n] = true
	}
	names := make([]voting.Name, len(list))
	augs := make([]augment.Augmentation, len(list))
	for i, n := range list {
		names[i], augs[i] = voting.Name{Task: n}, augment.Original()
		task, a := augment.ParseName(n)
		if task == n {
			task, a = augment.ParseBarName(n)
		}
		if task != n && known[task] {
			names[i], augs[i] = voting.Name{Task: task, Augmented: true}, a
		}
	}
	return names, augs, nil
}

// loadTruth reads the ground truth of --truth: a dataset folder, Kaggle's
// solutions, or whatever arc.Load reads.
func loadTruth(path string) ([]arc.Task, []string, error) {
	if _, err := os.Stat(filepath.Join(path, augment.ManifestName)); err == nil {
		t, err := openTestSet(path)
		if err != nil {
			return nil, nil, err
		}
		return t.tasks, nil, nil
	}
	if strings.HasSuffix(strings.ToLower(path), "solutions.json") {
		tasks, err := loadSolutions(path)
		return tasks, nil, err
	}
	c, err := arc.Load(path)
	if err != nil {
		if tasks, other := loadSolutions(path); other == nil {
			return tasks, nil, nil // solutions under another name
		}
		return nil, nil, command.Instead(err, "read ground truth", path, command.ARCTasks)
	}
	if err := voting.CheckTruth(c.Tasks); err != nil {
		return nil, nil, fmt.Errorf("read ground truth %s: %w", path, err)
	}
	return c.Tasks, c.Warnings, nil
}

// loadSolutions reads right answers as Kaggle publishes them.
func loadSolutions(path string) ([]arc.Task, error) {
	raw, err := files.Read(path, arc.MaxCombinedFile)
	if err != nil {
		return nil, fmt.Errorf("read ground truth: %w", err)
	}
	tasks, err := voting.ParseSolutions(raw)
	if err == nil {
		err = voting.CheckTruth(tasks)
	}
	if err != nil {
		return nil, fmt.Errorf("read ground truth %s: %w", path, err)
	}
	return tasks, nil
}
