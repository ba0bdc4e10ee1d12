package voting_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/voting"
)

// Rows scored per second: 30x30 canvases, every row augmented, one answer in
// four a new one.
func BenchmarkCounter(b *testing.B) {
	const n = 1024
	r := rand.New(rand.NewPCG(1, 2))
	full := func() arc.Grid {
		g := arc.NewGrid(10+r.IntN(10), 10+r.IntN(10))
		for i := range g.Cells {
			g.Cells[i] = uint8(r.IntN(10))
		}
		return g
	}
	tasks := []arc.Task{{ID: "a", Test: []arc.Pair{{Input: full(), Output: full()}}}}
	names := []string{"<blank>"}
	var rows voting.Rows
	for i := range n {
		a := augment.Augmentation{Dihedral: i % 8, Colors: augment.IdentityColors()}
		g := tasks[0].Test[0].Output
		if i%4 == 0 {
			g = full()
		}
		names = append(names, "a"+a.Suffix())
		rows.Identifiers = append(rows.Identifiers, int32(i+1))
		rows.QHalt = append(rows.QHalt, r.Float32())
		rows.TestIndex = append(rows.TestIndex, 0)
		rows.Preds = append(rows.Preds, canvas(a.Apply(g), 30)...)
	}
	augs := newNamed(names, tasks)
	c := voting.NewCounter(tasks, augs, 30, runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Add(rows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "rows/s")
}
