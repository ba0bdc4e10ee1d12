package augment

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
)

func randomGrid(r *rand.Rand, maxSide, colors int) arc.Grid {
	g := arc.NewGrid(1+r.IntN(maxSide), 1+r.IntN(maxSide))
	for i := range g.Cells {
		g.Cells[i] = uint8(r.IntN(colors))
	}
	return g
}

func randomAugmentation(r *rand.Rand) Augmentation {
	a := Original()
	a.Dihedral = r.IntN(NumDihedral)
	r.Shuffle(9, func(i, j int) { a.Colors[1+i], a.Colors[1+j] = a.Colors[1+j], a.Colors[1+i] })
	return a
}

func TestDihedralOfASmallGrid(t *testing.T) {
	g := arc.Grid{Rows: 2, Cols: 3, Cells: []uint8{1, 2, 3, 4, 5, 6}}
	want := []arc.Grid{
		{Rows: 2, Cols: 3, Cells: []uint8{1, 2, 3, 4, 5, 6}},
		{Rows: 3, Cols: 2, Cells: []uint8{3, 6, 2, 5, 1, 4}},
		{Rows: 2, Cols: 3, Cells: []uint8{6, 5, 4, 3, 2, 1}},
		{Rows: 3, Cols: 2, Cells: []uint8{4, 1, 5, 2, 6, 3}},
		{Rows: 2, Cols: 3, Cells: []uint8{3, 2, 1, 6, 5, 4}},
		{Rows: 2, Cols: 3, Cells: []uint8{4, 5, 6, 1, 2, 3}},
		{Rows: 3, Cols: 2, Cells: []uint8{1, 4, 2, 5, 3, 6}},
		{Rows: 3, Cols: 2, Cells: []uint8{6, 3, 5, 2, 4, 1}},
	}
	for k, w := range want {
		require.Equal(t, w, Dihedral(g, k), "transform %d", k)
	}
	require.Panics(t, func() { Dihedral(g, 8) })
	require.Panics(t, func() { Dihedral(g, -1) })
	require.True(t, Dihedral(arc.Grid{}, 1).Empty())
}

func TestTransformsAndInverses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		g := randomGrid(r, arc.MaxSide, arc.NumColors)
		a := randomAugmentation(r)
		for k := range NumDihedral {
			require.Equal(t, g, Dihedral(Dihedral(g, k), InverseDihedral(k)))
			j := r.IntN(NumDihedral)
			require.Equal(t, Dihedral(Dihedral(g, j), k), Dihedral(g, ComposeDihedral(k, j)))
		}
		require.Equal(t, g, a.Colors.Inverse().Apply(a.Colors.Apply(g)))
		require.Equal(t, g, a.Undo(a.Apply(g)))
		require.Equal(t, a.Apply(g), a.Colors.Apply(Dihedral(g, a.Dihedral)), "colours and turns commute")
		c, err := ParseColors(a.Colors.String())
		require.NoError(t, err)
		require.Equal(t, a.Colors, c)

		side := max(g.Rows, g.Cols) + r.IntN(arc.MaxSide-max(g.Rows, g.Cols)+1)
		row, col := r.IntN(side-g.Rows+1), r.IntN(side-g.Cols+1)
		canvas := make([]uint8, side*side)
		for i := range canvas {
			canvas[i] = 77 // leftovers must go
		}
		Place(canvas, side, g, row, col)
		require.Equal(t, g, Lift(canvas, side, g.Rows, g.Cols, row, col))
		for i, v := range canvas {
			rr, cc := i/side-row, i%side-col
			in := rr >= 0 && cc >= 0
			switch {
			case in && rr < g.Rows && cc < g.Cols:
				require.Equal(t, g.At(rr, cc)+FirstColor, v)
			case in && (rr == g.Rows && cc < g.Cols || cc == g.Cols && rr < g.Rows):
				require.EqualValues(t, EndToken, v)
			default:
				require.EqualValues(t, PadToken, v, "cell %d, also the corner", i)
			}
		}
	}
	require.Panics(t, func() { Place(make([]uint8, 4), 2, arc.NewGrid(2, 2), 0, 1) })
}

func TestParseColorsRefuses(t *testing.T) {
	for _, s := range []string{"", "012345678", "01234567890", "0123456788", "012345678x", "０123456789"} {
		_, err := ParseColors(s)
		require.Error(t, err, s)
	}
}

// T4: any stem works, also one that holds the separators of other programs.
func TestT4Names(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, stem := range []string{"007bbfb7", "my_task_1", "a_t3_", "_t0_", "x|||t3|||0123456789", "t1_0123456789", "ü", "_"} {
		task, a := ParseName(stem)
		require.Equal(t, stem, task)
		require.Equal(t, Original(), a)
		want := randomAugmentation(r)
		task, a = ParseName(stem + want.Suffix())
		require.Equal(t, stem, task)
		require.Equal(t, want, a)
	}
	for _, name := range []string{"a_t8_0123456789", "a_t1_0123456788", "a_t1-0123456789", "_t1_0123456789"} {
		task, a := ParseName(name)
		require.Equal(t, name, task)
		require.Equal(t, Original(), a)
	}
}

func TestBarNames(t *testing.T) {
	for _, stem := range []string{"007bbfb7", "my_task_1", "a|||b", "x|||t3|||0123456789"} {
		task, a := ParseBarName(stem + "|||t3|||0614732958")
		require.Equal(t, stem, task)
		require.Equal(t, "_t3_0614732958", a.Suffix())
	}
	for _, name := range []string{"007bbfb7", "a|||t9|||0123456789", "a|||t3|||0123456788", "a|||0123456789", "t3|||0123456789", ""} {
		task, a := ParseBarName(name)
		require.Equal(t, name, task)
		require.Equal(t, Original(), a)
	}
}

// Copies are what Build draws for a corpus of this task alone.
func TestCopiesAreTheBuilders(t *testing.T) {
	task := &arc.Task{ID: "x", HoldOut: true,
		Train: []arc.Pair{{Input: arc.Grid{Rows: 1, Cols: 2, Cells: []uint8{1, 2}}, Output: arc.Grid{Rows: 1, Cols: 2, Cells: []uint8{3, 0}}}},
		Test:  []arc.Pair{{Input: arc.Grid{Rows: 1, Cols: 2, Cells: []uint8{4, 2}}}}}
	p, err := newPlan(t.Context(), [][]*arc.Task{{task}}, Settings{NumAug: 30, Seed: 7, MaxGrid: 5, DestOrder: TrainFirst}, 1000)
	require.NoError(t, err)
	require.Equal(t, p.copies[1:], Copies(append(task.Train, task.Test...), 30, 7))
	same := arc.NewGrid(1, 1)
	require.Empty(t, Copies([]arc.Pair{{Input: same, Output: same}}, 5, 1), "nothing to change")
}
