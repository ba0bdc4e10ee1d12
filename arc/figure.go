package arc

import "image/color"

// figure is a picture of tasks as coloured rectangles and labels, in pixels.
// PNG and SVG are two ways to write it.
type figure struct {
	width, height int
	boxes         []box
	labels        []label
}

// box is a filled rectangle.
type box struct {
	x, y, w, h int
	fill       color.RGBA
}

// label is text whose top left corner is x, y.
type label struct {
	x, y int
	text string
}

// Measures of a figure, in pixels. A label is as high as the font of the PNG.
const (
	margin      = 16
	labelWidth  = 7 // of one letter
	labelHeight = 16
	pairGap     = 24
	sectionGap  = 40
	taskGap     = 28
	arrowHeight = 20
	largestCell = 20
	smallCell   = 4
	figureWidth = 1600 // wished for; cells shrink to reach it
)

var (
	paper  = color.RGBA{0xFF, 0xFF, 0xFF, 0xFF}
	ink    = color.RGBA{0x22, 0x22, 0x22, 0xFF}
	gutter = color.RGBA{0x55, 0x55, 0x55, 0xFF}
)

// newFigure lays the sheets out below each other: one column per pair with the
// input above the output, part after part.
func newFigure(sheets []*Sheet) *figure {
	f := &figure{width: 2 * margin, height: margin}
	for _, s := range sheets {
		f.sheet(s)
	}
	f.height += margin - taskGap
	if len(sheets) == 0 {
		f.height = 2 * margin
	}
	return f
}

// cellSize is the largest size with which the sheet's pairs fit side by side.
func cellSize(s *Sheet) int {
	cols, gaps := 0, 2*margin+sectionGap
	for _, part := range s.Parts {
		for _, p := range part {
			cols += max(p.Input.Cols, p.Output.Cols)
			gaps += pairGap
		}
	}
	return max(smallCell, min(largestCell, (figureWidth-gaps)/max(cols, 1)))
}

// sheet appends a sheet below what is there.
func (f *figure) sheet(s *Sheet) {
	cell := cellSize(s)
	f.label(margin, f.height, printed(s.Title))
	top := f.height + labelHeight + 8
	below := 0 // where outputs start
	for _, part := range s.Parts {
		for _, p := range part {
			below = max(below, top+labelHeight+p.Input.Rows*cell+arrowHeight)
		}
	}
	x, bottom := margin, below
	column := func(name string, p Pair) {
		f.label(x, top, name)
		y := top + labelHeight
		f.grid(x, y, cell, p.Input)
		width := max(p.Input.Cols*cell, len(name)*labelWidth)
		f.arrow(x+p.Input.Cols*cell/2, y+p.Input.Rows*cell+3, below-3)
		if p.Labelled() {
			f.grid(x, below, cell, p.Output)
			width = max(width, p.Output.Cols*cell)
			bottom = max(bottom, below+p.Output.Rows*cell)
		} else {
			f.label(x+p.Input.Cols*cell/2-labelWidth/2, below, "?")
			bottom = max(bottom, below+labelHeight)
		}
		x += width + pairGap
	}
	var lines []int // between parts
	for _, part := range s.Parts {
		if len(part) > 0 && x > margin {
			lines = append(lines, x-pairGap+(sectionGap-1)/2)
			x += sectionGap - pairGap
		}
		for _, p := range part {
			column(p.Label, p.Pair)
		}
	}
	for _, line := range lines {
		f.boxes = append(f.boxes, box{line, top, 1, bottom - top, gutter})
	}
	f.width = max(f.width, x-pairGap+margin)
	f.height = bottom + taskGap
}

func (f *figure) label(x, y int, text string) {
	f.labels = append(f.labels, label{x, y, text})
	f.width = max(f.width, x+len(text)*labelWidth+margin)
}

// grid draws cells on a dark ground that shows between them as lines.
func (f *figure) grid(x, y, cell int, g Grid) {
	line := 1
	if cell < 6 {
		line = 0
	}
	f.boxes = append(f.boxes, box{x, y, g.Cols*cell + line, g.Rows*cell + line, gutter})
	for r := range g.Rows {
		for c := range g.Cols {
			f.boxes = append(f.boxes, box{x + c*cell + line, y + r*cell + line, cell - line, cell - line, Palette[g.At(r, c)]})
		}
	}
}

// arrow points down from y0 to y1.
func (f *figure) arrow(x, y0, y1 int) {
	f.boxes = append(f.boxes, box{x, y0, 1, y1 - y0, ink})
	for k := range 4 {
		f.boxes = append(f.boxes, box{x - k, y1 - 1 - k, 2*k + 1, 1, ink})
	}
}
