// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// chart has a line for each contestant: microseconds an entry, by x.
type chart struct {
	x     string
	lines map[string]map[int]float64
}

// plot writes charts of what was measured into a directory, as SVG: of cells that differ
// in how many entries there are, and of those that differ in their number of threads.
func plot(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: bench plot DIR FILE")
	}
	b, _, _, err := readBoard(args[1:])
	if err != nil {
		return err
	}
	charts := map[string]*chart{} // by title
	for c, ran := range b {
		state := c.State
		if c.Cold {
			state += " cold"
		}
		sizes, threads := fmt.Sprintf("%s %s %s -T %d", c.FS, c.Corpus, state, c.Threads), fmt.Sprintf("%s %s %s %d", c.FS, c.Corpus, state, c.N)
		for name, s := range ran {
			cost := 1e6 * s.median() / float64(s.entries)
			add(charts, sizes, "entries", name, c.N, cost)
			add(charts, threads, "threads (0: it chooses)", name, c.Threads, cost)
		}
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return err
	}
	for _, title := range slices.Sorted(maps.Keys(charts)) {
		if c := charts[title]; len(c.values()) > 1 {
			file := filepath.Join(args[0], strings.NewReplacer(" -T ", "-T", " ", "-").Replace(title)+".svg")
			if err := c.write(title, file); err != nil {
				return err
			}
			fmt.Println(file)
		}
	}
	return nil
}

// add adds a point to the line of a chart.
func add(charts map[string]*chart, title, x, line string, value int, cost float64) {
	if charts[title] == nil {
		charts[title] = &chart{x: x, lines: map[string]map[int]float64{}}
	}
	c := charts[title]
	if c.lines[line] == nil {
		c.lines[line] = map[int]float64{}
	}
	c.lines[line][value] = cost
}

// values are all x that some line has, sorted. Each is a tick; these are evenly spaced.
func (c *chart) values() []int {
	var all []int
	for _, line := range c.lines {
		all = slices.AppendSeq(all, maps.Keys(line))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// write draws the chart into a file. The same chart gives the same bytes.
func (c *chart) write(title, file string) error {
	p := gonum.New()
	for _, style := range []*draw.TextStyle{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle,
		&p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		style.Font.Variant = "Sans"
	}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, c.x, "time per entry, µs"
	values := c.values()
	var ticks []string
	for _, x := range values {
		ticks = append(ticks, strconv.Itoa(x))
	}
	p.NominalX(ticks...)
	p.Add(plotter.NewGrid())
	for i, name := range slices.Sorted(maps.Keys(c.lines)) {
		var points plotter.XYs
		for at, x := range values {
			if y, ok := c.lines[name][x]; ok {
				points = append(points, plotter.XY{X: float64(at), Y: y})
			}
		}
		path, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		path.Color, path.Width = plotutil.DarkColors[i%len(plotutil.DarkColors)], vg.Points(1.5)
		dots.Color, dots.Shape, dots.Radius = path.Color, plotutil.Shape(i), vg.Points(3)
		p.Add(path, dots)
		p.Legend.Add(name, path, dots)
	}
	p.Y.Min, p.Y.Max = 0, p.Y.Max*(1.05+0.07*float64(len(c.lines))) // room for the legend
	p.Legend.Top, p.Legend.Left = true, true
	return p.Save(vg.Points(560), vg.Points(360), file)
}
