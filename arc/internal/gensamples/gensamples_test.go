package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
)

// The embedded files are what the generator writes, byte for byte.
func TestSamplesAreAsGenerated(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "training"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "training", "left-over.json"), nil, 0o644))
	require.NoError(t, write(dir, 1))
	kept := filepath.Join("..", "..", "samples")
	names := func(root string) []string {
		files, err := filepath.Glob(filepath.Join(root, "*", "*"))
		require.NoError(t, err)
		for i := range files {
			files[i], err = filepath.Rel(root, files[i])
			require.NoError(t, err)
		}
		return files
	}
	require.Equal(t, names(kept), names(dir), "run go generate ./arc")
	for _, name := range names(dir) {
		want, err := os.ReadFile(filepath.Join(kept, name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), name)
	}
}

// Every embedded task follows its rule and is open to no other.
func TestSamplesFollowTheirRules(t *testing.T) {
	c, err := arc.Samples()
	require.NoError(t, err)
	samples := catalog()
	require.Len(t, c.Tasks, len(samples))
	for i := range samples {
		s := &samples[i]
		found := c.Find(s.name)
		require.Len(t, found, 1, s.name)
		require.Equal(t, s.split, found[0].Split)
		require.NoError(t, s.check(found[0], append(catalog(), rivals()...)), s.name)
	}
}

func TestOtherSeedsGiveOtherTasks(t *testing.T) {
	one, err := generate(1)
	require.NoError(t, err)
	for _, seed := range []uint64{2, 3, 77} {
		other, err := generate(seed)
		require.NoError(t, err)
		require.Len(t, other, len(one))
		for i := range other {
			require.False(t, one[i].SamePairs(&other[i]), one[i].ID)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	tasks, err := generate(1)
	require.NoError(t, err)
	samples := catalog()
	s := &samples[0]
	clone := func() arc.Task {
		t := tasks[0]
		t.Train, t.Test = append([]arc.Pair(nil), t.Train...), append([]arc.Pair(nil), t.Test...)
		return t
	}
	all := append(catalog(), rivals()...)

	bad := clone()
	bad.Train[1].Output = bad.Train[1].Output.Clone()
	bad.Train[1].Output.Cells[0] ^= 1
	require.ErrorContains(t, s.check(&bad, all), "pair 1 is against the rule")

	bad = clone()
	bad.Test[0] = bad.Train[0]
	require.ErrorContains(t, s.check(&bad, all), "repeats an input")

	bad = clone()
	bad.Test[0].Input = bad.Test[0].Input.Clone()
	bad.Test[0].Input.Cells[0] = 9
	bad.Test[0].Output = s.apply(bad.Test[0].Input)
	require.ErrorContains(t, s.check(&bad, all), "shows colour 9")

	twin := sample{name: "twin", apply: func(g arc.Grid) arc.Grid {
		if g.Equal(tasks[0].Test[0].Input) {
			return g
		}
		return s.apply(g)
	}}
	good := clone()
	require.NoError(t, s.check(&good, all))
	require.ErrorContains(t, s.check(&good, append(all, twin)), "the rule of twin explains the demonstrations too")
}

// Rules on small grids whose results are written out by hand.
func TestRules(t *testing.T) {
	for name, tc := range map[string]struct {
		rule     func(arc.Grid) arc.Grid
		in, want [][]uint8
	}{
		"mirror":       {mirrorSideways, [][]uint8{{1, 2}, {3, 4}}, [][]uint8{{2, 1}, {4, 3}}},
		"turn":         {rotateQuarter, [][]uint8{{1, 2}, {3, 4}}, [][]uint8{{3, 1}, {4, 2}}},
		"unfold":       {unfoldDown, [][]uint8{{1, 2}, {3, 4}}, [][]uint8{{1, 2}, {3, 4}, {3, 4}, {1, 2}}},
		"enlarge":      {enlarge(2), [][]uint8{{1, 2}}, [][]uint8{{1, 1, 2, 2}, {1, 1, 2, 2}}},
		"shrink":       {shrink(2), [][]uint8{{1, 1, 2, 2}, {1, 1, 2, 2}}, [][]uint8{{1, 2}}},
		"shrink wrong": {shrink(2), [][]uint8{{1, 1, 2, 3}, {1, 1, 2, 2}}, nil},
		"crop":         {cropToContent, [][]uint8{{0, 0, 0}, {0, 1, 0}, {0, 0, 2}}, [][]uint8{{1, 0}, {0, 2}}},
		"crop nothing": {cropToContent, [][]uint8{{0, 0}}, nil},
		"wall":         {rightOfWall(5), [][]uint8{{1, 5, 2}, {5, 5, 3}}, [][]uint8{{2}, {3}}},
		"floor":        {dropToFloor(5), [][]uint8{{1, 0}, {0, 2}, {5, 5}}, [][]uint8{{0, 0}, {1, 2}, {5, 5}}},
		"pull":         {pullToWall(8), [][]uint8{{8, 0, 1}, {8, 2, 0}}, [][]uint8{{8, 1, 0}, {8, 2, 0}}},
		"enclosed":     {fillEnclosed(4), [][]uint8{{3, 3, 3, 0}, {3, 0, 3, 0}, {3, 3, 3, 0}}, [][]uint8{{3, 3, 3, 0}, {3, 4, 3, 0}, {3, 3, 3, 0}}},
		"largest":      {keepLargest, [][]uint8{{1, 1, 0, 2}}, [][]uint8{{1, 1, 0, 0}}},
		"largest tie":  {keepLargest, [][]uint8{{1, 0, 2}}, nil},
		"erase dots":   {eraseDots, [][]uint8{{1, 1, 0, 2}}, [][]uint8{{1, 1, 0, 0}}},
		"by size":      {recolorBySize(1, 2), [][]uint8{{5, 5, 0, 5}}, [][]uint8{{2, 2, 0, 1}}},
		"hollow":       {hollow, [][]uint8{{4, 4, 4}, {4, 4, 4}, {4, 4, 4}}, [][]uint8{{4, 4, 4}, {4, 0, 4}, {4, 4, 4}}},
		"count":        {countAsBar(3), [][]uint8{{3, 0}, {0, 3}}, [][]uint8{{3, 3}}},
		"both":         {combine(5, 2, both), [][]uint8{{1, 1, 5, 4, 0}}, [][]uint8{{2, 0}}},
		"either":       {combine(5, 2, either), [][]uint8{{1, 0, 5, 0, 0}}, [][]uint8{{2, 0}}},
		"connect":      {connectDots, [][]uint8{{2, 0, 2, 0}, {2, 0, 3, 0}}, [][]uint8{{2, 2, 2, 0}, {2, 0, 3, 0}}},
		"complete":     {completeSideways, [][]uint8{{1, 2, 0, 0}}, [][]uint8{{1, 2, 2, 1}}},
		"tallest":      {markBar(2, taller), [][]uint8{{0, 0, 5}, {5, 0, 5}}, [][]uint8{{0, 0, 2}, {5, 0, 2}}},
		"continue":     {continueRows, [][]uint8{{1, 2, 1, 2, 1, 0, 0}}, [][]uint8{{1, 2, 1, 2, 1, 2, 1}}},
		"diagonal":     {dotsToDiagonals, [][]uint8{{0, 7, 0}, {0, 0, 0}}, [][]uint8{{0, 7, 0}, {0, 0, 7}}},
		"halo":         {halo(1), [][]uint8{{0, 0, 0}, {3, 0, 0}}, [][]uint8{{1, 1, 0}, {3, 1, 0}}},
		"rows":         {dotsToRows, [][]uint8{{0, 0}, {3, 0}}, [][]uint8{{0, 0}, {3, 3}}},
		"border":       {drawBorder(8), [][]uint8{{0, 0, 0}, {0, 2, 0}, {0, 0, 2}}, [][]uint8{{8, 8, 8}, {8, 2, 8}, {8, 8, 8}}},
	} {
		t.Run(name, func(t *testing.T) {
			in := asGrid(tc.in)
			before := in.Clone()
			require.Equal(t, asGrid(tc.want), tc.rule(in))
			require.Equal(t, before, in, "the rule changed its input")
		})
	}
}

func asGrid(rows [][]uint8) arc.Grid {
	var g arc.Grid
	for _, row := range rows {
		g.Rows++
		g.Cols = len(row)
		g.Cells = append(g.Cells, row...)
	}
	return g
}
