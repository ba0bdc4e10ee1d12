package arc

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func drawnTask() *Task {
	return &Task{
		ID: "<x>", Split: "mine",
		Train: []Pair{{Grid{2, 3, []uint8{0, 1, 2, 3, 4, 5}}, Grid{1, 2, []uint8{6, 7}}}},
		Test:  []Pair{{Grid{1, 2, []uint8{8, 9}}, Grid{}}},
	}
}

func TestWriteTextAsDigits(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WriteText(&b, drawnTask(), TextOptions{}))
	require.Equal(t, strings.Join([]string{
		"<x> (mine)",
		"train[0] 2x3 > 1x2",
		"0 1 2  >  6 7",
		"3 4 5",
		"",
		"test[0] 1x2 > ?",
		"8 9  >  ?",
		"", "",
	}, "\n"), b.String())
}

func TestWriteTextInColor(t *testing.T) {
	var b strings.Builder
	task := &Task{ID: "x", Train: []Pair{{Grid{1, 3, []uint8{1, 1, 2}}, Grid{1, 1, []uint8{0}}}}, Test: []Pair{{Grid{1, 1, []uint8{0}}, Grid{}}}}
	require.NoError(t, WriteText(&b, task, TextOptions{Color: true}))
	lines := strings.Split(b.String(), "\n")
	require.Equal(t, "\x1b[48;2;0;116;217m    \x1b[48;2;255;65;54m  \x1b[0m >  \x1b[48;2;0;0;0m  \x1b[0m", strings.TrimRight(lines[2], " "))
}

func TestWriteTextPacksPairsIntoTheWidth(t *testing.T) {
	task := &Task{ID: "x", Test: []Pair{{NewGrid(1, 1), Grid{}}}}
	for range 4 {
		task.Train = append(task.Train, Pair{NewGrid(2, 5), NewGrid(2, 5)})
	}
	rows := func(width int) int {
		var b strings.Builder
		require.NoError(t, WriteText(&b, task, TextOptions{Width: width}))
		for _, line := range strings.Split(b.String(), "\n") {
			require.LessOrEqual(t, len(line), max(width, 24))
		}
		n := 0
		for _, line := range strings.Split(b.String(), "\n") {
			if strings.HasPrefix(line, "train[") {
				n++
			}
		}
		return n
	}
	require.Equal(t, 4, rows(10)) // a pair is 24 wide, the gap 4
	require.Equal(t, 4, rows(51))
	require.Equal(t, 2, rows(52))
	require.Equal(t, 2, rows(79))
	require.Equal(t, 2, rows(80))
	require.Equal(t, 1, rows(108))
}

func TestTitleIsFitToPrint(t *testing.T) {
	require.Equal(t, "a\uFFFD[31mb", (&Task{ID: "a\x1b[31mb"}).Title())
}

func TestPNGShowsTheGrids(t *testing.T) {
	var b bytes.Buffer
	task := drawnTask()
	require.NoError(t, WritePNG(&b, task))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	// The first grid starts under title and label, at the left margin.
	x, y := margin, margin+labelHeight+8+labelHeight
	for r := range 2 {
		for c := range 3 {
			want := Palette[task.Train[0].Input.At(r, c)]
			require.Equal(t, want, img.At(x+c*largestCell+largestCell/2, y+r*largestCell+largestCell/2), "cell %d,%d", r, c)
		}
	}
	require.Equal(t, gutter, img.At(x, y))
	require.Equal(t, paper, img.At(0, 0))
	below := y + 2*largestCell + arrowHeight
	require.Equal(t, Palette[6], img.At(x+largestCell/2, below+largestCell/2))
	require.Equal(t, Palette[7], img.At(x+largestCell+largestCell/2, below+largestCell/2))
}

func TestSVGHoldsTheSameBoxes(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, WriteSVG(&b, drawnTask()))
	require.Contains(t, b.String(), `fill="#870C25"`)
	require.Contains(t, b.String(), "&lt;x&gt; (mine)")
	rects := 0
	d := xml.NewDecoder(&b)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			rects++
		}
	}
	require.Equal(t, 1+len(newFigure(sheets([]*Task{drawnTask()})).boxes), rects)
}

func TestPicturesOfLargeTasksStayWide(t *testing.T) {
	big := &Task{ID: "big"}
	for range 5 {
		big.Train = append(big.Train, Pair{NewGrid(30, 30), NewGrid(30, 30)})
	}
	big.Test = big.Train[:2]
	f := newFigure(sheets([]*Task{big}))
	require.LessOrEqual(t, f.width, figureWidth)
	for _, b := range f.boxes {
		require.True(t, b.x >= 0 && b.y >= 0 && b.x+b.w <= f.width && b.y+b.h <= f.height)
	}
	many := make([]*Task, 120)
	for i := range many {
		many[i] = big
	}
	err := WritePNG(io.Discard, many...)
	require.ErrorContains(t, err, "a picture of 120 tasks would have")
	require.NoError(t, WriteSVG(io.Discard))
}

func TestPaletteIsThatOfTheApps(t *testing.T) {
	want := []string{"#000000", "#0074D9", "#FF4136", "#2ECC40", "#FFDC00", "#AAAAAA", "#F012BE", "#FF851B", "#7FDBFF", "#870C25"}
	for i, c := range Palette {
		require.Equal(t, want[i], hexColor(c))
	}
}

func TestNear(t *testing.T) {
	c := &Corpus{Tasks: []Task{{ID: "mirror-sideways"}, {ID: "mirror-sideways-square"}, {ID: "halo"}, {ID: "halo-green"}, {ID: "Border"}}}
	require.Equal(t, []string{"mirror-sideways"}, c.Near("mirrorsidewais")[:1])
	require.Equal(t, []string{"halo", "halo-green"}, c.Near("hal"))
	require.Equal(t, []string{"Border"}, c.Near("brder"))
	require.Empty(t, c.Near("zzzzzz"))
	require.Empty(t, c.Near(""))
}

// A sheet is a task's drawing with labels of the caller's.
func TestSheets(t *testing.T) {
	task := drawnTask()
	var want, got strings.Builder
	require.NoError(t, WriteText(&want, task, TextOptions{}))
	s := &Sheet{Title: task.Title(), Parts: [][]LabelledPair{Labelled("train", task.Train), {{"mine", task.Test[0]}}}}
	require.NoError(t, WriteSheetText(&got, s, TextOptions{}))
	require.Equal(t, strings.Replace(want.String(), "test[0]", "mine", 1), got.String())
	var a, b bytes.Buffer
	s.Parts[1] = Labelled("test", task.Test)
	require.NoError(t, WritePNG(&a, task))
	require.NoError(t, WriteSheetsPNG(&b, s))
	require.Equal(t, a.Bytes(), b.Bytes())
	require.NoError(t, WriteSheetsPNG(&b, &Sheet{Title: "nothing"}))
}
