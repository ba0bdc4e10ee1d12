package main

import (
	"fmt"
	"image/color"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// draw writes a PNG with a panel for each curve: medians as points, the fit as
// a line.
func draw(path string, curves []curve) error {
	const side = 9 * vg.Centimeter
	c := vgimg.New(side*vg.Length(len(curves)), side)
	tiles := vgdraw.Tiles{Rows: 1, Cols: len(curves), PadX: 5 * vg.Millimeter, PadTop: 2 * vg.Millimeter, PadRight: 3 * vg.Millimeter}
	for i, curve := range curves {
		p, err := curve.plot()
		if err != nil {
			return err
		}
		p.Draw(tiles.At(vgdraw.New(c), i, 0))
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(f); err != nil {
		return err
	}
	return f.Close()
}

func (c curve) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s\n%s, R² %.4f", c.Rest, c.Law, c.R2)
	p.Title.TextStyle.Font.Size = vg.Points(9)
	p.X.Label.Text, p.Y.Label.Text = c.Size, "training step, ms"
	p.X.Min, p.Y.Min = 0, 0
	p.Add(plotter.NewGrid())
	most := c.X[len(c.X)-1]
	xy := make(plotter.XYs, len(c.X))
	for i := range xy {
		xy[i] = plotter.XY{X: c.X[i], Y: 1e3 * c.Seconds[i]}
	}
	marks, err := plotter.NewScatter(xy)
	if err != nil {
		return nil, err
	}
	marks.Shape, marks.Color = vgdraw.CircleGlyph{}, color.RGBA{0, 114, 178, 255}
	line := plotter.NewFunction(func(x float64) float64 { return 1e3 * c.at(x) })
	line.XMin, line.XMax, line.Color = c.X[0], most, color.RGBA{213, 94, 0, 255}
	p.Add(line, marks)
	p.X.Max = 1.03 * most
	p.Y.Max = 1.05 * 1e3 * max(c.Seconds[len(c.Seconds)-1], c.at(most))
	return p, nil
}
