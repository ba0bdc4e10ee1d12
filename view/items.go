package view

import (
	"errors"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/hrm"
	"deeploop/internal/checkpoint"
)

// items are what a server shows. Everything is opened when it is first looked
// at, and an opening that failed is tried again: a training may have gone on.
type items struct {
	mu      sync.Mutex
	list    []*item
	byID    map[string]*item
	answers []*item // with open votes, the longest unused first
}

// item is an Item with its address and what is open of it.
type item struct {
	Item
	ID   string
	Name string
	run  string // id of the run that a predictions file is of
	data string // id of the dataset of a run

	mu      sync.Mutex // for what follows
	corpus  *arc.Corpus
	dataset *augment.Dataset
	names   *names
	votes   *tally
	curve   *Curve
	follow  *follower
	model   *openModel
}

// itemView is an item as the page sees it.
type itemView struct {
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	Path string `json:"path"`
	Run  string `json:"run,omitempty"`
	Data string `json:"data,omitempty"`
	// Model says that the run's checkpoints are of a model that can be opened.
	Model bool `json:"model,omitempty"`
}

func newItems(found []Item) *items {
	all := &items{byID: map[string]*item{}}
	for _, f := range found {
		all.add(f, "")
	}
	return all
}

// add registers an item unless it is there already, and returns it.
func (all *items) add(f Item, name string) *item {
	for _, it := range all.list {
		if it.Kind == f.Kind && samePath(it.Path, f.Path) {
			return it
		}
	}
	it := &item{Item: f, Name: name}
	if name == "" {
		it.Name = nameOf(f)
	}
	it.ID = all.freeID(slug(it.Name))
	all.list, all.byID[it.ID] = append(all.list, it), it
	return it
}

// nameOf is the last part of a path; "samples" for none.
func nameOf(f Item) string {
	if f.Path == "" {
		return "samples"
	}
	path := f.Path
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if f.Kind == KindAnswers { // the file is always called the same
		path = filepath.Dir(path)
	}
	return filepath.Base(path)
}

// evaluated is how hrm eval names the folder of an evaluation.
var evaluated = regexp.MustCompile(`^step-0*(\d+)-(ema|raw)-aug-(all|\d+)(-data-[0-9a-f]{8})?(.*)$`)

// evaluationName is that name in words, without the dataset's hash.
func evaluationName(folder string) string {
	m := evaluated.FindStringSubmatch(folder)
	if m == nil {
		return folder
	}
	copies := " copies "
	if m[3] == "1" {
		copies = " copy "
	}
	return strings.TrimSpace("step " + m[1] + " " + m[2] + ", " + m[3] + copies + strings.ReplaceAll(strings.Trim(m[5], "-"), "-", " "))
}

// slug is a name as part of an address.
func slug(name string) string {
	name = strings.ReplaceAll(name, ",", "")
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, name), "-.")
}

func (all *items) freeID(id string) string {
	if id == "" {
		id = "item"
	}
	free := id
	for n := 2; all.byID[free] != nil; n++ {
		free = id + "-" + strconv.Itoa(n)
	}
	return free
}

func samePath(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	x, errA := filepath.Abs(a)
	y, errB := filepath.Abs(b)
	return errA == nil && errB == nil && x == y
}

// refresh looks for evaluations and datasets that runs have by now, and lists
// everything.
func (all *items) refresh() []itemView {
	all.mu.Lock()
	defer all.mu.Unlock()
	views := []itemView{}
	model := map[*item]bool{}
	for _, it := range append([]*item(nil), all.list...) {
		if it.Kind != KindRun {
			continue
		}
		data, ok := datasetOfRun(it.Path)
		model[it] = ok
		if it.Data != "" {
			data = it.Data
		}
		if kind, ok := folderKind(data); ok && kind == KindDataset {
			it.data = all.add(Item{Kind: KindDataset, Path: data}, "").ID
		}
		for _, path := range evaluations(it.Path) {
			a := all.add(Item{Kind: KindAnswers, Path: path, Data: it.Data}, it.Name+" "+evaluationName(filepath.Base(filepath.Dir(path))))
			a.run = it.ID
		}
	}
	for _, it := range all.list {
		views = append(views, itemView{ID: it.ID, Kind: it.Kind, Name: it.Name, Path: it.Path, Run: it.run, Data: it.data, Model: model[it]})
	}
	return views
}

// datasetOfRun is the folder a run of this program's reasoner was trained on.
func datasetOfRun(run string) (dir string, ok bool) {
	ck, err := checkpoint.OpenFound(run, checkpoint.LastSaved)
	if err != nil {
		return "", false
	}
	defer ck.Close()
	c, err := hrm.CheckpointConfig(ck)
	if err != nil {
		return "", false
	}
	return c.DataPath, true
}

// of finds the item that a request names.
func (all *items) of(r *http.Request, kind Kind) (*item, error) {
	id := r.PathValue("item")
	all.mu.Lock()
	it := all.byID[id]
	all.mu.Unlock()
	if it == nil || it.Kind != kind {
		return nil, notFound("no %s called %.80q", kind, id)
	}
	return it, nil
}

// withPath finds the id of an item, "" where there is none.
func (all *items) withPath(kind Kind, path string) string {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, it := range all.list {
		if it.Kind == kind && samePath(it.Path, path) {
			return it.ID
		}
	}
	return ""
}

// used keeps the votes of the last few predictions files and drops others'.
func (all *items) used(it *item) {
	all.mu.Lock()
	defer all.mu.Unlock()
	kept := all.answers[:0]
	for _, other := range all.answers {
		if other != it {
			kept = append(kept, other)
		}
	}
	all.answers = append(kept, it)
	if len(all.answers) > openAnswers {
		old := all.answers[0]
		all.answers = all.answers[1:]
		go func() { // whoever counts its votes now holds it
			old.mu.Lock()
			defer old.mu.Unlock()
			old.votes = nil
		}()
	}
}

func (all *items) close() error {
	var errs []error
	for _, it := range all.list {
		if it.dataset != nil {
			errs = append(errs, it.dataset.Close())
		}
		if it.model != nil {
			it.model.Close()
		}
	}
	return errors.Join(errs...)
}
