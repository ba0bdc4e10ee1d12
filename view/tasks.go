package view

import (
	"net/http"

	"deeploop/arc"
	"deeploop/augment"
)

// gridText is a grid as the page reads it: rows of digits with a slash
// between them, "" for none.
func gridText(g arc.Grid) string {
	if g.Empty() {
		return ""
	}
	b := make([]byte, 0, len(g.Cells)+g.Rows-1)
	for i, v := range g.Cells {
		if i > 0 && i%g.Cols == 0 {
			b = append(b, '/')
		}
		b = append(b, '0'+v)
	}
	return string(b)
}

// canvasText is a row of tokens as the page reads it.
func canvasText(tokens []uint8) string {
	b := make([]byte, len(tokens))
	for i, t := range tokens {
		switch {
		case t == augment.PadToken:
			b[i] = '.'
		case t == augment.EndToken:
			b[i] = '|'
		case t < augment.VocabSize:
			b[i] = '0' + t - augment.FirstColor
		default:
			b[i] = '?'
		}
	}
	return string(b)
}

// pairView is a pair; Output is "" where it is not known.
type pairView struct {
	Input  string `json:"input"`
	Output string `json:"output"`
}

func pairViews(pairs []arc.Pair) []pairView {
	views := make([]pairView, len(pairs))
	for i, p := range pairs {
		views[i] = pairView{gridText(p.Input), gridText(p.Output)}
	}
	return views
}

// taskRow is a task in a list.
type taskRow struct {
	ID    string `json:"id"`
	Split string `json:"split,omitempty"`
	Train int    `json:"train"`
	Test  int    `json:"test"`
	Side  int    `json:"side"` // the longest side of its grids
}

// taskView is a whole task.
type taskView struct {
	taskRow
	File       string     `json:"file"`
	HoldOut    bool       `json:"hold_out"`
	Note       string     `json:"note,omitempty"`
	TrainPairs []pairView `json:"train_pairs"`
	TestPairs  []pairView `json:"test_pairs"`
}

func rowOf(t *arc.Task) taskRow {
	return taskRow{ID: t.ID, Split: t.Split, Train: len(t.Train), Test: len(t.Test), Side: sideOf(t)}
}

// sideOf is the longest side of a task's grids.
func sideOf(t *arc.Task) int {
	side := 0
	for _, pairs := range [][]arc.Pair{t.Train, t.Test} {
		for _, p := range pairs {
			side = max(side, p.Input.Rows, p.Input.Cols, p.Output.Rows, p.Output.Cols)
		}
	}
	return side
}

// openCorpus reads the tasks of an item; "" are the sample tasks.
func (it *item) openCorpus() (*arc.Corpus, error) {
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.corpus == nil {
		read := func() (*arc.Corpus, error) { return arc.Load(it.Path) }
		if it.Path == "" {
			read = arc.Samples
		}
		c, err := read()
		if err != nil {
			return nil, err
		}
		it.corpus = c
	}
	return it.corpus, nil
}

func (s *Server) listTasks(r *http.Request) (any, error) {
	it, err := s.items.of(r, KindTasks)
	if err != nil {
		return nil, err
	}
	c, err := it.openCorpus()
	if err != nil {
		return nil, err
	}
	p, err := pageOf(r, len(c.Tasks), func(i int) (taskRow, error) { return rowOf(&c.Tasks[i]), nil })
	return struct {
		page[taskRow]
		Warnings []string `json:"warnings"`
	}{p, append([]string{}, c.Warnings...)}, err
}

func (s *Server) oneTask(r *http.Request) (any, error) {
	it, err := s.items.of(r, KindTasks)
	if err != nil {
		return nil, err
	}
	c, err := it.openCorpus()
	if err != nil {
		return nil, err
	}
	n, err := number(r, "task", len(c.Tasks))
	if err != nil {
		return nil, err
	}
	t := &c.Tasks[n]
	v := taskView{taskRow: rowOf(t), File: t.File, HoldOut: t.HoldOut, TrainPairs: pairViews(t.Train), TestPairs: pairViews(t.Test)}
	if hint, odd := t.OddPair(); odd {
		v.Note = hint
	}
	return v, nil
}
