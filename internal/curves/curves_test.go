package curves

import (
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/runlog"
)

func lines() []runlog.Line {
	var ls []runlog.Line
	for i := 1; i <= 10; i++ {
		ls = append(ls, runlog.Line{Step: i, Event: runlog.Train, Values: runlog.Metrics{"loss": float64(i)}})
	}
	ls[4].Values["loss"] = math.NaN()
	return append(ls, runlog.Line{Step: 10, Event: runlog.Eval, Values: runlog.Metrics{"loss": 3}})
}

func TestOfTakesFiniteValuesOfOneEvent(t *testing.T) {
	s := Of("run", lines(), runlog.Train, "loss")
	require.Equal(t, []int{1, 2, 3, 4, 6, 7, 8, 9, 10}, s.Steps)
	require.False(t, s.Points)
	require.Equal(t, []float64{3}, Of("run", lines(), runlog.Eval, "loss").Value)
	require.Empty(t, Of("run", lines(), runlog.Train, "none").Steps)
}

func TestSmooth(t *testing.T) {
	s := Series{Value: []float64{1, 3, 5, 7}}
	require.Equal(t, []float64{1, 2, 4, 6}, s.Smooth(2).Value)
	require.Equal(t, s.Value, s.Smooth(1).Value)
	require.Equal(t, []float64{1, 3, 5, 7}, s.Value, "the source stays")
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	p := []Panel{{Title: "a", Series: []Series{Of("run", lines(), runlog.Train, "loss")}}, {Title: "b", Series: []Series{Of("run", lines(), runlog.Eval, "loss")}}}
	for _, name := range []string{"x.png", "x.svg", "x.pdf"} {
		require.NoError(t, Save(filepath.Join(dir, name), p))
	}
	f, err := os.Open(filepath.Join(dir, "x.png"))
	require.NoError(t, err)
	defer f.Close()
	img, err := png.Decode(f)
	require.NoError(t, err)
	require.Greater(t, img.Bounds().Dy(), img.Bounds().Dx()*9/10)
	require.ErrorContains(t, Save(filepath.Join(dir, "x.gif2"), p), "use .png, .svg or .pdf")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3, "nothing half-written stays")
}

// A logarithmic axis shows the numbers that were measured.
func TestTicksAreTheSteps(t *testing.T) {
	labels := func(steps ...int) (all []string) {
		for _, tick := range (Panel{Series: []Series{{Steps: steps}}}).ticks() {
			all = append(all, tick.Label)
		}
		return all
	}
	require.Equal(t, []string{"1", "2", "4", "9"}, labels(1, 2, 4, 9))
	require.Equal(t, []string{"1", "2", "", "301"}, labels(2, 290, 301))
	require.Equal(t, []string{"1"}, labels(1))
}

// Lines that lie over each other are of different widths.
func TestHiddenLinesAreWider(t *testing.T) {
	a := Series{Steps: []int{1, 2}, Value: []float64{0, 1}}
	b := Series{Steps: []int{1, 2}, Value: []float64{0, 2}}
	p := Panel{Series: []Series{a, b, a, a}}
	require.Equal(t, []int{2, 0, 1, 0}, []int{p.hiding(0), p.hiding(1), p.hiding(2), p.hiding(3)})
}

// A setting has a point for every finite value, a bar at the mean and a line for
// the deviation.
func TestSaveGroups(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.svg")
	mean, sd, nan := 2.0, 1.0, math.NaN()
	strokes := func(groups ...Group) int {
		t.Helper()
		require.NoError(t, Save(path, []Groups{{Title: "loss", Groups: groups}}))
		picture, err := os.ReadFile(path)
		require.NoError(t, err)
		return strings.Count(string(picture), "stroke:#0072B2") + strings.Count(string(picture), "fill:#0072B2")
	}
	require.Equal(t, 1, strokes(Group{Name: "a", Values: []float64{2, nan}}))
	require.Equal(t, 2, strokes(Group{Name: "a", Values: []float64{1, 3}, Mean: &nan, SD: &nan}))
	require.Equal(t, 3, strokes(Group{Name: "a", Values: []float64{1, 3}, Mean: &mean}))
	require.Equal(t, 4, strokes(Group{Name: "a", Values: []float64{1, 3}, Mean: &mean, SD: &sd}, Group{Name: "b"}))
	require.Zero(t, strokes())
	require.Zero(t, strokes(Group{Name: "b"}))
}
