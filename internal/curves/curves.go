// Package curves draws metrics of training runs as a picture.
package curves

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

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

// diagram is what a picture is made of: a Panel, or Groups.
type diagram interface{ plot() (*plot.Plot, error) }

// Save draws diagrams, one above the other, and writes them to path; its ending
// (.png, .svg, .pdf) is the format.
func Save[D diagram](path string, panels []D) error {
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
		drawBeside(pl, tiles.At(draw.New(c), 0, i))
	}
	return write(path, c)
}

// drawBeside draws a plot with its legend on the right of it, or inside where
// its names are so long that little would be left.
func drawBeside(pl *plot.Plot, c draw.Canvas) {
	legend := pl.Legend
	wide := legend.Rectangle(c).Size().X + 3*vg.Millimeter
	if wide > (c.Max.X-c.Min.X)/3 {
		pl.Draw(c)
		return
	}
	pl.Legend = plot.NewLegend()
	pl.Draw(draw.Crop(c, 0, -wide, 0, 0))
	legend.Draw(draw.Crop(c, 0, 0, 0, -pl.Title.TextStyle.Height(pl.Title.Text)))
}

// Panel is a diagram of lines.
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

// hiding counts the lines that would be drawn right over line i.
func (p Panel) hiding(i int) (n int) {
	for _, s := range p.Series[i+1:] {
		if slices.Equal(s.Steps, p.Series[i].Steps) && slices.Equal(s.Value, p.Series[i].Value) {
			n++
		}
	}
	return n
}

// ticks marks the steps that there are on a logarithmic axis, and writes the
// numbers that there is room for, the last one in any case.
func (p Panel) ticks() []plot.Tick {
	steps := []int{1}
	for _, s := range p.Series {
		steps = append(steps, s.Steps...)
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	most := steps[len(steps)-1]
	room := 0.05 * math.Log(float64(max(2, most))) // a twentieth of the axis
	var ticks []plot.Tick
	written := math.Inf(-1)
	for _, n := range steps {
		t := plot.Tick{Value: float64(n)}
		at := math.Log(t.Value)
		if n == most || at-written >= room && math.Log(float64(most))-at >= room {
			t.Label, written = strconv.Itoa(n), at
		}
		ticks = append(ticks, t)
	}
	return ticks
}

func (p Panel) plot() (*plot.Plot, error) {
	pl := plot.New()
	pl.Title.Text = p.Title
	pl.X.Label.Text = cmp.Or(p.X, "step")
	if p.LogX {
		pl.X.Scale, pl.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(p.ticks())
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
		below := vg.Length(p.hiding(i)) // wider, to be seen
		line.Width = vg.Points(1.2) + below*vg.Points(2)
		pl.Add(line)
		if s.Points {
			marks.Shape, marks.Radius = draw.CircleGlyph{}, marks.Radius+below*vg.Points(1)
			pl.Add(marks)
		}
		pl.Legend.Add(s.Name, line)
	}
	if p.LogX { // a single point would give the axis a beginning of 0
		pl.X.Min, pl.X.Max = 1, max(2, pl.X.Max)
	}
	return pl, nil
}
