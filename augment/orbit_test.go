package augment

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/internal/rng"
)

// plainKey is equal for equal multisets of pairs, the slow way.
func plainKey(pairs []arc.Pair, a Augmentation) string {
	keys := make([]string, len(pairs))
	for i, p := range pairs {
		keys[i] = fmt.Sprint(a.Apply(p.Input), a.Apply(p.Output))
	}
	sort.Strings(keys)
	return strings.Join(keys, "|")
}

// plainDraw is the reference's loop without any shortcut.
func plainDraw(m *rng.Legacy, pairs []arc.Pair, numAug int) []Augmentation {
	var got []Augmentation
	if numAug == 0 {
		return nil
	}
	seen := map[string]bool{plainKey(pairs, Original()): true}
	for range 5 * numAug {
		a := drawAugmentation(m)
		if k := plainKey(pairs, a); !seen[k] {
			seen[k] = true
			got = append(got, a)
		}
		if len(got) == numAug {
			break
		}
	}
	return got
}

func randomPairs(r *rand.Rand) []arc.Pair {
	side, colors := 1+r.IntN(4), 1+r.IntN(5)
	pairs := make([]arc.Pair, 1+r.IntN(3))
	for i := range pairs {
		pairs[i] = arc.Pair{Input: randomGrid(r, side, colors), Output: randomGrid(r, side, colors)}
		switch r.IntN(6) {
		case 0:
			pairs[i] = pairs[0] // a pair twice
		case 1:
			pairs[i].Output = arc.Grid{} // unlabelled
		case 2:
			a := randomAugmentation(r)
			pairs[i] = arc.Pair{Input: a.Apply(pairs[0].Input), Output: a.Apply(pairs[0].Output)}
		}
	}
	return pairs
}

// T11: the copies and the random stream are those of the plain loop, for
// tasks with every kind of symmetry, also once their orbit is exhausted.
func TestT11DrawMatchesPlainLoop(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	short := 0
	for i := range 60 {
		pairs := randomPairs(r)
		numAug := []int{0, 1, 8, 60, 150}[i%5]
		a, b := rng.NewLegacy(uint32(i)), rng.NewLegacy(uint32(i))
		want := plainDraw(a, pairs, numAug)
		require.Equal(t, want, drawCopies(b, newOrbit(pairs), numAug, nil), "case %d", i)
		require.Equal(t, a, b, "the streams have moved apart")
		if len(want) < numAug {
			short++
		}
	}
	require.Greater(t, short, 5)
}

// T11: one colour on 1x1 grids has an orbit of nine.
func TestT11OrbitSizes(t *testing.T) {
	one := arc.Grid{Rows: 1, Cols: 1, Cells: []uint8{1}}
	zero := arc.Grid{Rows: 1, Cols: 1, Cells: []uint8{0}}
	corner := arc.Grid{Rows: 2, Cols: 3, Cells: []uint8{1, 0, 0, 0, 2, 0}}
	for _, c := range []struct {
		pairs []arc.Pair
		want  int
	}{
		{[]arc.Pair{{Input: one, Output: one}}, 9},
		{[]arc.Pair{{Input: zero, Output: zero}}, 1},
		{[]arc.Pair{{Input: one, Output: zero}, {Input: one, Output: zero}}, 9},
		{[]arc.Pair{{Input: corner, Output: zero}}, 8 * 9 * 8},
	} {
		require.Equal(t, c.want, newOrbit(c.pairs).size(100000))
		require.Equal(t, min(c.want, 50), newOrbit(c.pairs).size(50))
		got := drawCopies(rng.NewLegacy(1), newOrbit(c.pairs), 2000, nil)
		require.Len(t, got, c.want-1)
	}
}

// Fingerprints tell apart what differs: shape, a single cell, how often a pair
// occurs, which output goes with which input.
func TestFingerprintDiffers(t *testing.T) {
	g := func(rows, cols int, cells ...uint8) arc.Grid { return arc.Grid{Rows: rows, Cols: cols, Cells: cells} }
	a, b := arc.Pair{Input: g(1, 2, 1, 2), Output: g(1, 1, 3)}, arc.Pair{Input: g(1, 2, 2, 1), Output: g(1, 1, 4)}
	swapped1, swapped2 := arc.Pair{Input: a.Input, Output: b.Output}, arc.Pair{Input: b.Input, Output: a.Output}
	sets := [][]arc.Pair{
		{a}, {b}, {a, a}, {a, b}, {swapped1, swapped2}, {{Input: a.Output, Output: a.Input}},
		{{Input: g(2, 1, 1, 2), Output: a.Output}}, {{Input: a.Input}}, {{Input: g(2, 2, 0, 0, 0, 0)}}, {{Input: g(1, 4, 0, 0, 0, 0)}},
	}
	seen := map[fingerprint]int{}
	for i, s := range sets {
		f := newOrbit(s).fingerprint(Original())
		j, dup := seen[f]
		require.False(t, dup, "sets %d and %d", i, j)
		seen[f] = i
	}
	require.Equal(t, newOrbit([]arc.Pair{a, b}).fingerprint(Original()), newOrbit([]arc.Pair{b, a}).fingerprint(Original()))
}
