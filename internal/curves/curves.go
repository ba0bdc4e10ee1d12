// Package curves draws metrics of training runs as a picture.
package curves

import (
	"cmp"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"deeploop/internal/runlog"
)

// Series is one line: the values of a metric by step.
type Series struct {
	Name  string
	Steps []int
	Value []float64
	// Points draws marks joined by thin lines, for the few values of
	// evaluations.
	Points bool
}

// Of collects the finite values of a metric from the lines with that event.
func Of(name string, lines []runlog.Line, event, metric string) Series {
	s := Series{Name: name, Points: event == runlog.Eval}
	for _, l := range lines {
		v, ok := l.Values[metric]
		if l.Event != event || !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		s.Steps = append(s.Steps, l.Step)
		s.Value = append(s.Value, v)
	}
	return s
}

// Smooth replaces every value by the mean of the window of n values that ends
// with it (fewer at the beginning).
func (s Series) Smooth(n int) Series {
	if n <= 1 {
		return s
	}
	out := s
	out.Value = make([]float64, len(s.Value))
	sum := 0.0
	for i, v := range s.Value {
		sum += v
		if i >= n {
			sum -= s.Value[i-n]
		}
		out.Value[i] = sum / float64(min(i+1, n))
	}
	return out
}

// Save draws panels, one above the other, each with its title and series, and
// writes them to path; its ending (.png, .svg, .pdf) is the format.
func Save(path string, panels []Panel) error {
	const width, height = 18 * vg.Centimeter, 9 * vg.Centimeter
	if _, ok := KindOf(path); !ok {
		return fmt.Errorf("draw %s: the name does not say the format; use .png, .svg or .pdf", path)
	}
	c, err := draw.NewFormattedCanvas(width, height*vg.Length(len(panels)), ext(path))
	if err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadY: 4 * vg.Millimeter, PadTop: 2 * vg.Millimeter, PadRight: 4 * vg.Millimeter}
	for i, p := range panels {
		pl, err := p.plot()
		if err != nil {
			return fmt.Errorf("draw %s: %w", path, err)
		}
		pl.Draw(tiles.At(draw.New(c), 0, i))
	}
	return write(path, c)
}

// Panel is one diagram.
type Panel struct {
	Title  string
	Series []Series
	X      string // what the horizontal axis shows; "" is the step
	LogX   bool   // logarithmic, for steps of 1 and more
}

// palette is safe for colour-blind readers (Okabe and Ito).
var palette = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {86, 180, 233, 255}, {230, 159, 0, 255},
}

func (p Panel) plot() (*plot.Plot, error) {
	pl := plot.New()
	pl.Title.Text = p.Title
	pl.X.Label.Text = cmp.Or(p.X, "step")
	if p.LogX {
		pl.X.Scale, pl.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	pl.Legend.Top = true
	pl.Add(plotter.NewGrid())
	for i, s := range p.Series {
		xy := make(plotter.XYs, len(s.Steps))
		for j := range xy {
			xy[j] = plotter.XY{X: float64(s.Steps[j]), Y: s.Value[j]}
		}
		line, marks, err := plotter.NewLinePoints(xy)
		if err != nil {
			return nil, err
		}
		line.Color, marks.Color = palette[i%len(palette)], palette[i%len(palette)]
		line.Width = vg.Points(1.2)
		pl.Add(line)
		if s.Points {
			marks.Shape = draw.CircleGlyph{}
			pl.Add(marks)
		}
		pl.Legend.Add(s.Name, line)
	}
	if p.LogX { // a single point would give the axis a beginning of 0
		pl.X.Min, pl.X.Max = 1, max(2, pl.X.Max)
	}
	return pl, nil
}
