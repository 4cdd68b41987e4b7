// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// chart is what draw.go draws.
type chart struct {
	file, title, x, y string
	ticks             map[float64]string // of the x axis, which is logarithmic
	lines             map[string]*line
}

// line is one contestant's.
type line struct {
	points map[float64]float64
	// level is drawn all across, dashed: what has no place on the x axis.
	level float64
}

// plot writes charts of what was measured into a directory, as SVG.
func plot(args []string) error {
	flags := flag.NewFlagSet("plot", flag.ContinueOnError)
	keepAll := flags.Bool("all", false, "keep runs that other programs disturbed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return errors.New("usage: bench plot [-all] DIR FILE")
	}
	records, err := readRecords(flags.Args()[1:])
	if err != nil {
		return err
	}
	b, _ := newBoard(records, *keepAll)
	charts := append(b.sizes(), b.threads()...)
	if len(charts) == 0 {
		return errors.New("no cells there that differ in size or in threads")
	}
	dir := flags.Arg(0)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range charts {
		if err := c.write(filepath.Join(dir, c.file)); err != nil {
			return err
		}
	}
	return nil
}

// sizes is what an entry costs in trees of each size: a chart for what else
// cells differ in, a line a contestant.
func (b board) sizes() []chart {
	byRest := map[cell]*chart{}
	for _, c := range b.order() {
		rest := c
		rest.N, rest.Size = 0, ""
		for name, s := range b[c] {
			chart := at(byRest, rest)
			chart.line(name).points[float64(s.entries)] = 1e6 * quantile(s.wall, 0.5) / float64(s.entries)
		}
	}
	for c, chart := range byRest {
		chart.file = fmt.Sprintf("size-%s-%s-%s-T%d.svg", c.FS, c.Corpus, c.state(), c.Threads)
		chart.title = fmt.Sprintf("%s, %s, labels %s, -T %d", c.FS, c.Corpus, strings.ReplaceAll(c.state(), "-", ", "), c.Threads)
		chart.x, chart.y = "entries", "time per entry, µs"
		chart.ticks = map[float64]string{1e3: "1,000", 1e4: "10,000", 1e5: "100,000", 1e6: "1 million", 1e7: "10 million"}
	}
	return worth(byRest)
}

// threads is how many times as fast each number of threads is as one: a chart
// for what else cells differ in, but for the corpus: contestants have a line
// each.
func (b board) threads() []chart {
	byRest := map[cell]*chart{}
	for _, c := range b.order() {
		rest, one := c, c
		rest.Threads, rest.Corpus, rest.Size = 0, "", ""
		one.Threads = 1
		for name, s := range b[c] {
			base := b[one][name]
			if base == nil {
				continue // nothing to be relative to
			}
			chart, speed := at(byRest, rest), quantile(base.wall, 0.5)/quantile(s.wall, 0.5)
			if l := chart.line(name + ", " + c.Corpus); c.Threads == 0 {
				l.level = speed
			} else {
				l.points[float64(c.Threads)] = speed
				chart.ticks[float64(c.Threads)] = fmt.Sprint(c.Threads)
			}
		}
	}
	for c, chart := range byRest {
		chart.file = fmt.Sprintf("threads-%s-%s-%d.svg", c.FS, c.state(), c.N)
		chart.title = fmt.Sprintf("%s, %d entries, labels %s", c.FS, c.N, strings.ReplaceAll(c.state(), "-", ", "))
		chart.x, chart.y = "threads (dashed: -T 0 chooses)", "entries a second, relative to one thread"
	}
	return worth(byRest)
}

func at(charts map[cell]*chart, c cell) *chart {
	if charts[c] == nil {
		charts[c] = &chart{ticks: map[float64]string{}, lines: map[string]*line{}}
	}
	return charts[c]
}

func (c *chart) line(name string) *line {
	if c.lines[name] == nil {
		c.lines[name] = &line{points: map[float64]float64{}}
	}
	return c.lines[name]
}

// worth returns those in which some line has two points.
func worth(charts map[cell]*chart) []chart {
	var list []chart
	for _, c := range charts {
		for _, l := range c.lines {
			if len(l.points) > 1 {
				list = append(list, *c)
				break
			}
		}
	}
	slices.SortFunc(list, func(x, y chart) int { return cmp.Compare(x.file, y.file) })
	return list
}

// state is the state, and if caches were cold.
func (c cell) state() string {
	if c.Cold {
		return c.State + "-cold"
	}
	return c.State
}

// stretches cuts a line's points where it lacks one that another line has: a
// line across would claim what nobody measured.
func (c *chart) stretches(l *line) [][]float64 {
	every := map[float64]bool{}
	for _, other := range c.lines {
		for x := range other.points {
			every[x] = true
		}
	}
	var all [][]float64
	whole := false
	for _, x := range slices.Sorted(maps.Keys(every)) {
		_, has := l.points[x]
		switch {
		case has && whole:
			all[len(all)-1] = append(all[len(all)-1], x)
		case has:
			all = append(all, []float64{x})
		}
		whole = has
	}
	return all
}
