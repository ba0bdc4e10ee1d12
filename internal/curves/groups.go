package curves

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Group is a setting of an experiment: a metric's value with each seed. What is
// not finite is not drawn.
type Group struct {
	Name     string
	Values   []float64
	Mean, SD *float64 // nil where there is none
}

// Groups is a diagram of settings beside each other: every value is a point,
// the mean a bar across them, the standard deviation a line through it.
type Groups struct {
	Title  string
	Groups []Group
}

func (g Groups) plot() (*plot.Plot, error) {
	pl := plot.New()
	pl.Title.Text = g.Title
	pl.Add(plotter.NewGrid())
	const bar, besides = 0.28, 0.5 // of the room of a group
	var names plot.ConstantTicks
	for i, group := range g.Groups {
		names = append(names, plot.Tick{Value: float64(i), Label: group.Name})
		at, colour := float64(i), palette[i%len(palette)]
		lines := []plotter.XYs{}
		if finite(group.Mean) {
			lines = append(lines, plotter.XYs{{X: at - bar, Y: *group.Mean}, {X: at + bar, Y: *group.Mean}})
			if finite(group.SD) {
				lines = append(lines, plotter.XYs{{X: at, Y: *group.Mean - *group.SD}, {X: at, Y: *group.Mean + *group.SD}})
			}
		}
		for _, xy := range lines {
			line, err := plotter.NewLine(xy)
			if err != nil {
				return nil, err
			}
			line.Color, line.Width = colour, vg.Points(1.2)
			pl.Add(line)
		}
		var xy plotter.XYs
		for _, v := range group.Values {
			if finite(&v) {
				xy = append(xy, plotter.XY{X: at, Y: v})
			}
		}
		points, err := plotter.NewScatter(xy)
		if err != nil {
			return nil, err
		}
		points.Shape, points.Color, points.Radius = draw.CircleGlyph{}, colour, vg.Points(2.5)
		pl.Add(points)
	}
	if margin := 0.05 * (pl.Y.Max - pl.Y.Min); margin > 0 {
		pl.Y.Min, pl.Y.Max = pl.Y.Min-margin, pl.Y.Max+margin
	}
	pl.X.Tick.Marker = names
	pl.X.Min, pl.X.Max = -besides, float64(len(names))-1+besides
	pl.X.Tick.Label.Rotation = math.Pi / 7
	pl.X.Tick.Label.XAlign, pl.X.Tick.Label.YAlign = draw.XRight, draw.YTop
	return pl, nil
}

func finite(v *float64) bool { return v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0) }
