package voting_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/voting"
)

// byTen takes identifiers 10t+1 to 10t+9 for task t.
type byTen struct{}

func (byTen) Task(id int32) int                 { return int(id) / 10 }
func (byTen) Undo(_ int32, g arc.Grid) arc.Grid { return g }
func curveOf(tasks []arc.Task, n ...int) *voting.Curve {
	return voting.NewCurve(n, byTen{}, func() *voting.Counter { return voting.NewCounter(tasks, byTen{}, side, 2) })
}

// Each point must be what counting only its copies gives, in both ways of
// telling test inputs apart and whatever the batches are.
func TestCurveCountsTheFirstCopies(t *testing.T) {
	tasks := []arc.Task{task("a", "1>2", "11>3"), task("b", "4>5")}
	type row struct {
		id, test int32
		answer   string
		q        float32
	}
	all := []row{ // task a: copies 3, 1, 2 in this order; task b: copies 1, 2
		{3, 0, "7", 1}, {3, 1, "3", 0}, {1, 0, "2", 0}, {1, 1, "3", 0}, {2, 0, "2", 0}, {2, 1, "9", 3},
		{11, 0, "6", 2}, {12, 0, "5", 3},
	}
	batch := func(some []row, indexed bool) voting.Rows {
		var b voting.Rows
		for _, r := range some {
			b.Identifiers, b.QHalt = append(b.Identifiers, r.id), append(b.QHalt, r.q)
			b.Preds = append(b.Preds, canvas(grid(r.answer), side)...)
			if indexed {
				b.TestIndex = append(b.TestIndex, r.test)
			} else {
				b.Inputs = append(b.Inputs, canvas(tasks[r.id/10].Test[r.test].Input, side)...)
			}
		}
		return b
	}
	for _, indexed := range []bool{true, false} {
		for _, size := range []int{1, 3, len(all)} {
			c := curveOf(tasks, 2, 0, 1)
			for lo := 0; lo < len(all); lo += size {
				require.NoError(t, c.Add(batch(all[lo:min(len(all), lo+size)], indexed)))
			}
			points := c.Points()
			require.Len(t, points, 3)
			ranks := func(p voting.CurvePoint) (r []int) {
				for _, task := range p.Results {
					for _, test := range task.Tests {
						r = append(r, test.Rank)
					}
				}
				return r
			}
			require.Equal(t, []int{0, 1, 2}, []int{points[0].Copies, points[1].Copies, points[2].Copies})
			require.Equal(t, []int{3, 6, 8}, []int{points[0].Votes, points[1].Votes, points[2].Votes})
			require.Equal(t, []int{0, 1, 0}, ranks(points[0])) // copies 3 and 11 alone
			require.Equal(t, []int{2, 1, 1}, ranks(points[1])) // 7 has the larger q; 5 the larger q
			require.Equal(t, []int{1, 1, 1}, ranks(points[2]))
		}
	}
}

func TestCurveRefusesForeignRows(t *testing.T) {
	tasks := []arc.Task{task("a", "1>2")}
	c := voting.NewCurve([]int{0}, plain(1), func() *voting.Counter { return voting.NewCounter(tasks, plain(1), side, 1) })
	err := c.Add(voting.Rows{Identifiers: []int32{7}, QHalt: []float32{0}, Preds: canvas(grid("1"), side), TestIndex: []int32{0}})
	require.ErrorContains(t, err, "belongs to no task")
	require.NoError(t, c.Add(voting.Rows{Identifiers: []int32{0}, QHalt: []float32{0}, Preds: canvas(grid("1"), side), TestIndex: []int32{0}}), "padding is skipped")
}
