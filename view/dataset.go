package view

import (
	"net/http"
	"slices"

	"deeploop/arc"
	"deeploop/augment"
)

// openData opens the dataset of an item with the places of its names.
func (it *item) openData() (*augment.Dataset, *names, error) {
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.dataset == nil {
		d, err := openDataset(it.Path)
		if err != nil {
			return nil, nil, err
		}
		n, err := openNames(d)
		if err != nil {
			d.Close()
			return nil, nil, err
		}
		it.dataset, it.names = d, n
	}
	return it.dataset, it.names, nil
}

// split finds the split that a request names.
func (s *Server) split(r *http.Request, kind Kind) (it *item, split *augment.Split, names *nameReader, err error) {
	if it, err = s.items.of(r, kind); err != nil {
		return nil, nil, nil, err
	}
	d, n, err := it.openData()
	if err != nil {
		return nil, nil, nil, err
	}
	if split, err = splitOf(d, r.PathValue("split")); err != nil {
		return nil, nil, nil, err
	}
	names, err = n.open()
	return it, split, names, err
}

func splitOf(d *augment.Dataset, name string) (*augment.Split, error) {
	switch name {
	case "train":
		return d.Train, nil
	case "test":
		return d.Test, nil
	}
	return nil, notFound("no split %.40q, expected train or test", name)
}

// groupRow is a task of a split in a list.
type groupRow struct {
	ID       string `json:"id"`
	Copies   int    `json:"copies"`
	Examples int    `json:"examples"` // of the task as it is
	Side     int    `json:"side"`     // the longest side of its grids
	Row      int    `json:"row"`      // its first example
}

func (s *Server) listGroups(r *http.Request) (any, error) {
	_, split, names, err := s.split(r, KindDataset)
	if err != nil {
		return nil, err
	}
	defer names.close()
	scratch := make([]byte, split.SeqLen)
	return pageOf(r, split.Groups(), func(g int) (groupRow, error) {
		puzzle := int(split.GroupIndices[g])
		name, err := names.name(split.PuzzleIdentifiers[puzzle])
		if err != nil {
			return groupRow{}, err
		}
		first, end := int(split.PuzzleIndices[puzzle]), int(split.PuzzleIndices[puzzle+1])
		row := groupRow{ID: name, Copies: int(split.GroupIndices[g+1]) - puzzle, Examples: end - first, Row: first}
		for example := first; example < min(end, first+maxExamples); example++ {
			for _, rows := range []*augment.Rows{split.Inputs, split.Labels} {
				tokens, err := rows.Row(example, scratch)
				if err != nil {
					return row, err
				}
				grid := gridIn(tokens)
				row.Side = max(row.Side, grid.Rows, grid.Cols)
			}
		}
		return row, nil
	})
}

// gridIn is the grid on a canvas, wherever it lies; an empty one where there
// is none.
func gridIn(tokens []uint8) arc.Grid {
	side := sideOfCanvas(len(tokens))
	top, left, bottom, right := side, side, -1, -1
	for i, t := range tokens[:side*side] {
		if t >= augment.FirstColor {
			top, bottom = min(top, i/side), max(bottom, i/side)
			left, right = min(left, i%side), max(right, i%side)
		}
	}
	if bottom < 0 {
		return arc.Grid{}
	}
	g := arc.NewGrid(bottom-top+1, right-left+1)
	for i := range g.Cells {
		if t := tokens[(top+i/g.Cols)*side+left+i%g.Cols]; t >= augment.FirstColor && t < augment.VocabSize {
			g.Cells[i] = t - augment.FirstColor
		}
	}
	return g
}

// sideOfCanvas is the side of a square canvas, rounded down.
func sideOfCanvas(tokens int) int {
	side := 0
	for (side+1)*(side+1) <= tokens {
		side++
	}
	return side
}

// puzzleView is one copy of a task, with the examples as the model reads them.
type puzzleView struct {
	ID         string        `json:"id"`   // of the task
	Name       string        `json:"name"` // of the copy
	Copies     int           `json:"copies"`
	Copy       int           `json:"copy"`
	Identifier int32         `json:"identifier"`
	Dihedral   int           `json:"dihedral"`
	Colors     string        `json:"colors"` // colour c became the c-th digit
	Side       int           `json:"side"`   // of the canvas
	Total      int           `json:"total"`  // examples, of which some are listed
	Examples   []exampleView `json:"examples"`
}

// exampleView is one row of a dataset: canvases.
type exampleView struct {
	Row   int    `json:"row"`
	Input string `json:"input"`
	Label string `json:"label"`
}

func (s *Server) onePuzzle(r *http.Request) (any, error) {
	_, split, names, err := s.split(r, KindDataset)
	if err != nil {
		return nil, err
	}
	defer names.close()
	g, err := number(r, "group", split.Groups())
	if err != nil {
		return nil, err
	}
	first, end := int(split.GroupIndices[g]), int(split.GroupIndices[g+1])
	k, err := number(r, "copy", end-first)
	if err != nil {
		return nil, err
	}
	v := puzzleView{Copy: k, Copies: end - first, Identifier: split.PuzzleIdentifiers[first+k], Side: sideOfCanvas(split.SeqLen)}
	if v.ID, err = names.name(split.PuzzleIdentifiers[first]); err != nil {
		return nil, err
	}
	if v.Name, err = names.name(v.Identifier); err != nil {
		return nil, err
	}
	a := augment.Original()
	if k > 0 { // a task's own name may look like a copy's
		_, a = augment.ParseName(v.Name)
	}
	v.Dihedral, v.Colors = a.Dihedral, a.Colors.String()
	lo, hi := int(split.PuzzleIndices[first+k]), int(split.PuzzleIndices[first+k+1])
	v.Total = hi - lo
	v.Examples, err = examples(split, lo, min(hi, lo+maxExamples))
	return v, err
}

// examples reads rows lo to hi.
func examples(split *augment.Split, lo, hi int) ([]exampleView, error) {
	views := make([]exampleView, 0, hi-lo)
	scratch := make([]byte, split.SeqLen)
	for i := lo; i < hi; i++ {
		v := exampleView{Row: i}
		for _, part := range []struct {
			rows *augment.Rows
			to   *string
		}{{split.Inputs, &v.Input}, {split.Labels, &v.Label}} {
			tokens, err := part.rows.Row(i, scratch)
			if err != nil {
				return nil, err
			}
			*part.to = canvasText(tokens)
		}
		views = append(views, v)
	}
	return views, nil
}

// demonstrations are the training pairs of the task with this identifier, nil
// where the split has none.
func demonstrations(split *augment.Split, identifier int32) ([]arc.Pair, error) {
	puzzle := slices.Index(split.PuzzleIdentifiers, identifier)
	if puzzle < 0 {
		return nil, nil
	}
	var pairs []arc.Pair
	scratch := make([]byte, split.SeqLen)
	lo, hi := int(split.PuzzleIndices[puzzle]), int(split.PuzzleIndices[puzzle+1])
	for i := lo; i < min(hi, lo+maxExamples); i++ {
		var p arc.Pair
		for _, part := range []struct {
			rows *augment.Rows
			to   *arc.Grid
		}{{split.Inputs, &p.Input}, {split.Labels, &p.Output}} {
			tokens, err := part.rows.Row(i, scratch)
			if err != nil {
				return nil, err
			}
			*part.to = gridIn(tokens)
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}
