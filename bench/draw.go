// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"math"
	"slices"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// write draws the chart into a file. The same chart gives the same bytes.
func (c *chart) write(file string) error {
	p := gonum.New()
	for _, style := range []*draw.TextStyle{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle,
		&p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		style.Font.Variant = "Sans"
	}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Title.Padding, p.X.Padding = vg.Points(8), 0
	var ticks gonum.ConstantTicks
	for _, x := range slices.Sorted(maps.Keys(c.ticks)) {
		ticks = append(ticks, gonum.Tick{Value: x, Label: c.ticks[x]})
	}
	p.X.Scale, p.X.Tick.Marker = gonum.LogScale{}, ticks
	p.Add(plotter.NewGrid())
	for i, name := range slices.Sorted(maps.Keys(c.lines)) {
		if err := c.draw(p, i, name); err != nil {
			return err
		}
	}
	// Points that lie beside the last tick are to be seen as well; and the
	// legend needs its room above the lines.
	p.X.Min, p.X.Max = min(p.X.Min, ticks[0].Value), max(p.X.Max, ticks[len(ticks)-1].Value)
	p.Y.Min, p.Y.Max = 0, p.Y.Max*(1.05+0.07*float64(len(c.lines)))
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(2)
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(6), vg.Points(-4)
	return p.Save(vg.Points(560), vg.Points(360), file)
}

// draw adds the i-th line.
func (c *chart) draw(p *gonum.Plot, i int, name string) error {
	l := c.lines[name]
	colour := plotutil.DarkColors[i%len(plotutil.DarkColors)]
	var thumbnails []gonum.Thumbnailer
	for _, xs := range c.stretches(l) {
		xys := make(plotter.XYs, len(xs))
		for k, x := range xs {
			xys[k] = plotter.XY{X: x, Y: l.points[x]}
		}
		path, points, err := plotter.NewLinePoints(xys)
		if err != nil {
			return err
		}
		path.Color, path.Width = colour, vg.Points(1.5)
		points.Color, points.Shape, points.Radius = colour, plotutil.Shape(i), vg.Points(3)
		p.Add(path, points)
		thumbnails = []gonum.Thumbnailer{path, points}
	}
	if l.level > 0 {
		level := plotter.NewFunction(func(float64) float64 { return l.level })
		level.Color, level.Width, level.Dashes = colour, vg.Points(1), []vg.Length{vg.Points(5), vg.Points(4)}
		p.Add(level)
		p.Y.Max = math.Max(p.Y.Max, l.level) // a function does not say how far it reaches
		thumbnails = append(thumbnails, level)
	}
	p.Legend.Add(name, thumbnails...)
	return nil
}
