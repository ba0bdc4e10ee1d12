package augment

import (
	"sort"

	"deeploop/arc"
)

// renderer draws the rows of one array, inputs or labels, of a split. It only
// reads, so several goroutines may share it.
type renderer struct {
	plan  *plan
	split *splitPlan
	side  int
	// grids[g][i] is pair i of group g under each dihedral transform.
	grids [][][NumDihedral]arc.Grid
}

func newRenderer(p *plan, s *splitPlan, labels bool) *renderer {
	r := &renderer{plan: p, split: s, side: p.settings.MaxGrid, grids: make([][][NumDihedral]arc.Grid, len(s.groups))}
	for g := range s.groups {
		pairs := s.groups[g].pairs
		r.grids[g] = make([][NumDihedral]arc.Grid, len(pairs))
		for i := range pairs {
			grid := pairs[i].Input
			if labels {
				grid = pairs[i].Output
			}
			for t := range NumDihedral {
				r.grids[g][i][t] = Dihedral(grid, t)
			}
		}
	}
	return r
}

// rowSize is the number of tokens, and bytes, of a row.
func (r *renderer) rowSize() int { return r.side * r.side }

// render writes rows [lo, hi) into dst, which has room for just them.
func (r *renderer) render(dst []uint8, lo, hi int) {
	s := r.split
	puzzle := sort.Search(s.puzzles(), func(i int) bool { return int(s.puzzleAt[i+1]) > lo })
	group := sort.Search(len(s.groups), func(i int) bool { return int(s.groupAt[i+1]) > puzzle })
	clear(dst)
	size := r.rowSize()
	for row := lo; row < hi; puzzle++ {
		for puzzle >= int(s.groupAt[group+1]) {
			group++
		}
		t := &r.plan.tasks[s.groups[group].task]
		a := &r.plan.copies[t.first+puzzle-int(s.groupAt[group])]
		lookup := tokensOf(a.Colors)
		end := min(hi, int(s.puzzleAt[puzzle+1]))
		for ; row < end; row++ {
			g := &r.grids[group][row-int(s.puzzleAt[puzzle])][a.Dihedral]
			var top, left int
			if s.offsets != nil {
				top, left = int(s.offsets[2*row]), int(s.offsets[2*row+1])
			}
			place(dst[:size], r.side, g.Rows, g.Cols, g.Cells, top, left, &lookup)
			dst = dst[size:]
		}
	}
}
