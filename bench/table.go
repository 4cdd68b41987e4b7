// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// disturbed is how much of a run's time other programs may have had before the
// run is left out.
const disturbed = 0.1

// series is what one contestant took in one cell.
type series struct {
	entries   int
	wall, cpu []float64 // seconds
	byRound   map[int]float64
	maxrss    int64 // KiB, the largest
	calls     int64 // 0: not counted
	threads   int   // the most, where calls are counted
}

// board is all results: cell, contestant, series.
type board map[cell]map[string]*series

func newBoard(records []record, keepAll bool) (b board, leftOut int) {
	b = board{}
	for _, r := range records {
		if !keepAll && r.Calls == 0 && r.Foreign > disturbed*r.Wall+0.02 {
			leftOut++
			continue
		}
		if b[r.cell] == nil {
			b[r.cell] = map[string]*series{}
		}
		s := b[r.cell][r.Contestant]
		if s == nil {
			s = &series{entries: r.Entries, byRound: map[int]float64{}}
			b[r.cell][r.Contestant] = s
		}
		if r.Calls > 0 {
			s.calls, s.threads = r.Calls, r.PeakThreads
			continue
		}
		s.wall = append(s.wall, r.Wall)
		s.byRound[r.Round] = r.Wall
		s.cpu = append(s.cpu, r.User+r.Sys)
		s.maxrss = max(s.maxrss, r.MaxRSS)
	}
	return b, leftOut
}

// floorOf names what a contestant is measured against: the better of these. Of calls of
// small volumes that is go-selinux: the floor is a program, which has to start.
func floorOf(contestant string) []string {
	switch {
	case strings.HasSuffix(contestant, "-fchdir"):
		return []string{"floor-dir-fchdir", "floor-inode-fchdir"}
	case strings.HasSuffix(contestant, "-exact"):
		return []string{"floor-dir-mend", "floor-inode-mend"}
	case strings.HasSuffix(contestant, "-call"):
		return []string{"go-selinux-call"}
	}
	return floors
}

// floor is the median time of the best floor: with -T 0, which chooses, also of
// every number of threads that ran.
func (b board) floor(c cell, contestant string) (float64, bool) {
	best := math.Inf(1)
	for other, contestants := range b {
		if c.Threads == 0 {
			other.Threads = 0
		}
		if other != c {
			continue
		}
		for name, s := range contestants {
			if base, _ := split(name); slices.Contains(floorOf(contestant), base) {
				best = min(best, quantile(s.wall, 0.5))
			}
		}
	}
	return best, !math.IsInf(best, 1)
}

// table writes what was measured as Markdown: each cell, then the means.
func table(w io.Writer, args []string) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	keepAll := flags.Bool("all", false, "keep runs that other programs disturbed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	records, err := readRecords(flags.Args())
	if err != nil {
		return err
	}
	b, leftOut := newBoard(records, *keepAll)
	fmt.Fprintf(w, "%d runs; %d more left out, where other programs had over %.0f %% of the time.\n\n", len(records)-leftOut, leftOut, 100*disturbed)
	b.cells(w)
	tellDisks(w, records)
	b.means(w)
	return nil
}

func (b board) cells(w io.Writer) {
	fmt.Fprintln(w, "| cell | contestant | median s | runs | × floor or go-selinux-call (quartiles) | CPU s | MiB | calls an entry | threads |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|")
	for _, c := range b.order() {
		for _, name := range slices.Sorted(maps.Keys(b[c])) {
			s := b[c][name]
			ratio := ""
			if f, ok := b.floor(c, name); ok {
				ratio = fmt.Sprintf("%.2f (%.2f–%.2f)", quantile(s.wall, 0.5)/f, quantile(s.wall, 0.25)/f, quantile(s.wall, 0.75)/f)
			}
			calls := " | "
			if s.calls > 0 {
				calls = fmt.Sprintf("%.3f | %d", float64(s.calls)/float64(s.entries), s.threads)
			}
			fmt.Fprintf(w, "| %s | %s | %.4g | %d | %s | %.3g | %.0f | %s |\n", c, name, quantile(s.wall, 0.5), len(s.wall), ratio,
				quantile(s.cpu, 0.5), float64(s.maxrss)/1024, calls)
		}
	}
}

// means writes the geometric means.
func (b board) means(w io.Writer) {
	fmt.Fprintln(w, "\n| × floor or go-selinux-call, geometric mean | mean | cells | worst |")
	fmt.Fprintln(w, "|---|---|---|---|")
	for _, name := range []string{"fastlabel", "dropin-call", "fastlabel-fchdir", "fastlabel-exact"} {
		var ratios []float64
		worst, at := 0.0, cell{}
		for _, c := range b.order() {
			f, ok := b.floor(c, name)
			if s := b[c][name]; ok && s != nil {
				r := quantile(s.wall, 0.5) / f
				ratios = append(ratios, r)
				if r > worst {
					worst, at = r, c
				}
			}
		}
		if len(ratios) > 0 {
			fmt.Fprintf(w, "| %s | %.3f | %d | %.2f: %s |\n", name, geometric(ratios), len(ratios), worst, at)
		}
	}
	fmt.Fprintln(w, "\n| time over fastlabel's, geometric mean | wrong | right | stray | least |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, peer := range peers {
		b.peer(w, peer)
	}
}

func (b board) peer(w io.Writer, peer string) {
	byState := map[string][]float64{}
	least, at := math.Inf(1), cell{}
	for _, c := range b.order() {
		s, us := b[c][peer], b[c]["fastlabel"]
		if s == nil || us == nil {
			continue
		}
		r := quantile(s.wall, 0.5) / quantile(us.wall, 0.5)
		byState[c.State] = append(byState[c.State], r)
		if r < least {
			least, at = r, c
		}
	}
	if len(byState) == 0 {
		return
	}
	fmt.Fprintf(w, "| %s |", peer)
	for _, state := range states {
		if r := byState[state]; len(r) > 0 {
			fmt.Fprintf(w, " %.2f |", geometric(r))
		} else {
			fmt.Fprint(w, " |")
		}
	}
	fmt.Fprintf(w, " %.2f: %s |\n", least, at)
}

func (b board) order() []cell {
	return slices.SortedFunc(maps.Keys(b), func(x, y cell) int {
		return cmp.Or(cmp.Compare(x.FS, y.FS), cmp.Compare(x.Corpus, y.Corpus), cmp.Compare(x.N, y.N),
			cmp.Compare(x.State, y.State), cmp.Compare(x.Threads, y.Threads), cmp.Compare(x.Size, y.Size),
			cmp.Compare(fmt.Sprint(x.Cold), fmt.Sprint(y.Cold)), cmp.Compare(x.Limit, y.Limit), cmp.Compare(x.Beside, y.Beside))
	})
}

// quantile returns the value below which that part of the values lies.
func quantile(values []float64, part float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	at := part * float64(len(s)-1)
	i := int(at)
	if i+1 == len(s) {
		return s[i]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}

func geometric(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}
