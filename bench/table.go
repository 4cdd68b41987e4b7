// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// series is what one contestant took in one cell.
type series struct {
	entries             int
	wall, cpu, requests []float64
	maxrss              int64 // KiB, the largest
}

func (s *series) median() float64 { return quantile(s.wall, 0.5) }

// board is all results: cell, contestant, series.
type board map[cell]map[string]*series

// disturbed bounds the part of a run's time that other programs may have had before the
// run is counted as disturbed.
const disturbed = 0.1

// readBoard reads files of records.
func readBoard(files []string) (b board, runs, foreign int, err error) {
	b = board{}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, 0, 0, err
		}
		defer f.Close()
		for d := json.NewDecoder(f); ; runs++ {
			var r record
			if err := d.Decode(&r); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, 0, 0, fmt.Errorf("%s: %w", name, err)
			}
			if r.Foreign > disturbed*r.Wall+0.02 {
				foreign++
			}
			b.add(r)
		}
	}
	return b, runs, foreign, nil
}

func (b board) add(r record) {
	if b[r.cell] == nil {
		b[r.cell] = map[string]*series{}
	}
	s := b[r.cell][r.Contestant]
	if s == nil {
		s = &series{entries: r.Entries}
		b[r.cell][r.Contestant] = s
	}
	s.wall = append(s.wall, r.Wall)
	s.cpu = append(s.cpu, r.User+r.Sys)
	s.requests = append(s.requests, float64(r.Requests))
	s.maxrss = max(s.maxrss, r.MaxRSS)
}

// base returns the median that a contestant is compared with: of the one named, or
// of the best floor if none is. With -T 0, which chooses, that is the best of every
// number of threads that ran. NaN where none ran.
func (b board) base(c cell, contestant, named string) float64 {
	names := contestants[contestant].base
	if named != "" {
		names = []string{named}
	} else if names == nil {
		names = floors
	}
	best := math.NaN()
	for other, ran := range b {
		if c.Threads == 0 && named == "" {
			other.Threads = 0
		}
		if other != c {
			continue
		}
		for _, name := range names {
			if s := ran[name]; s != nil && !(s.median() >= best) {
				best = s.median()
			}
		}
	}
	return best
}

// table writes what was measured: each cell, and then the means.
func table(w io.Writer, args []string) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	base := flags.String("base", "", "the contestant that all others are compared with; the floor, or go-selinux's call, if empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b, runs, foreign, err := readBoard(flags.Args())
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d runs; in %d of them other programs had over %.0f %% of the time.\n\n", runs, foreign, 100*disturbed)
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	b.cells(out, *base)
	b.means(out, *base)
	if *base == "" {
		b.means(out, "fastlabel")
	}
	return out.Flush()
}

func (b board) cells(w io.Writer, base string) {
	fmt.Fprintf(w, "cell\tcontestant\tmedian s\t× %s (quartiles)\truns\tCPU s\tMiB\trequests\n", baseName(base))
	for _, c := range b.order() {
		for _, name := range slices.Sorted(maps.Keys(b[c])) {
			s, ratio := b[c][name], ""
			if of := b.base(c, name, base); !math.IsNaN(of) {
				ratio = fmt.Sprintf("%.2f (%.2f–%.2f)", s.median()/of, quantile(s.wall, 0.25)/of, quantile(s.wall, 0.75)/of)
			}
			fmt.Fprintf(w, "%s\t%s\t%.4g\t%s\t%d\t%.3g\t%.0f\t%.0f\n", c, name, s.median(), ratio,
				len(s.wall), quantile(s.cpu, 0.5), float64(s.maxrss)/1024, quantile(s.requests, 0.5))
		}
	}
}

// means writes the geometric means over all cells that have both.
func (b board) means(w io.Writer, base string) {
	names := map[string]bool{}
	for _, ran := range b {
		for name := range ran {
			names[name] = true
		}
	}
	fmt.Fprintf(w, "\n× %s, geometric mean\t%s\tall\tcells\tleast\tmost\n", baseName(base), strings.Join(states, "\t"))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		byState := map[string][]float64{}
		var all []float64
		var least, most string
		for _, c := range b.order() {
			s := b[c][name]
			if s == nil {
				continue
			}
			r := s.median() / b.base(c, name, base)
			if math.IsNaN(r) {
				continue
			}
			at := fmt.Sprintf("%.2f: %s", r, c)
			if len(all) == 0 || r < slices.Min(all) {
				least = at
			}
			if len(all) == 0 || r > slices.Max(all) {
				most = at
			}
			all = append(all, r)
			byState[c.State] = append(byState[c.State], r)
		}
		if name == base || len(all) == 0 {
			continue
		}
		fmt.Fprint(w, name)
		for _, state := range states {
			fmt.Fprintf(w, "\t%s", strings.TrimPrefix(fmt.Sprintf("%.3f", geometric(byState[state])), "NaN"))
		}
		fmt.Fprintf(w, "\t%.3f\t%d\t%s\t%s\n", geometric(all), len(all), least, most)
	}
}

func baseName(base string) string { return cmp.Or(base, "floor or go-selinux-call") }

func (b board) order() []cell {
	return slices.SortedFunc(maps.Keys(b), func(x, y cell) int {
		return cmp.Or(cmp.Compare(x.FS, y.FS), cmp.Compare(x.Corpus, y.Corpus), cmp.Compare(x.N, y.N),
			cmp.Compare(x.String(), y.String()), cmp.Compare(x.Threads, y.Threads))
	})
}

// quantile returns the value below which that part of the values lies.
func quantile(values []float64, part float64) float64 {
	s := slices.Sorted(slices.Values(values))
	at := part * float64(len(s)-1)
	i := int(at)
	if i+1 == len(s) {
		return s[i]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}

// geometric is NaN for no values.
func geometric(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}
