// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestTunes: while workers come and go all the time, all is labelled and counted
// once. They do for a second tuner, which looks often and finds the processors idle.
func TestTunes(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	root := filepath.Join(treetest.Fresh(t, "tmpfs"), "tree")
	treetest.Build(t, root, treetest.Text(t, "dir .\ndir d%d x40\nfile d7/f%d x9000\nfile d9/g%d x3000\n"))
	const all = 40 + 9000 + 3000
	for i, way := range slices.Compact([]sys.Way{sys.ByDescriptor, sys.ByName, xattrio.Fastest()}) {
		label := func(string) string { return fmt.Sprintf("system_u:object_r:container_file_t:s0:c1,c%d", 2+i) }
		for _, outcome := range []Outcome{Written, Right} {
			m := enclosed(t, root)
			var k *Walk
			end := func() {}
			begin := sync.OnceFunc(func() { // there are workers now
				tu := tuner{cores: k.begin, most: k.most, left: joins * k.most, measure: diskMeasure, workers: k.begin}
				end = watch.Repeat(50*time.Microsecond, func() { tu.tick(tuned{k}, 0, 0) })
			})
			k = New(&Job{
				Top:    &Want{label(root), &numbered{root, label, func(string) { begin() }}},
				Kernel: Kernel{Way: way},
				Events: Events{Failed: func(path, op string, err error) { t.Errorf("%s: %s %s: %v", way, op, path, err) }},
			}, m, &Top{FD: m.Top, Outcome: Skipped}, ample(t))
			err := k.Run(t.Context())
			end()
			if got := k.Tally(); err != nil || got.Seen != all || got.Of[outcome] != all {
				t.Errorf("%s: %+v, %v", way, got, err)
			}
		}
		for path, has := range treetest.Read(t, root) {
			if path != "." && has != label(path) {
				t.Errorf("%s: %s has %q", way, path, has)
			}
		}
	}
}

// TestTuner plays disks: rate is how fast some workers are, busy how many
// processors they keep so.
func TestTuner(t *testing.T) {
	flat := func(int) float64 { return 1000 }
	for _, test := range []struct {
		name string
		rate func(workers int) float64
		busy float64
		want []int // workers in each window
	}{
		{"in memory", flat, 1.9, []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}},
		{"a disk that does one thing at a time", flat, 0.3, []int{4, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 2}},
		{"a disk that does many", func(n int) float64 { return float64(n) }, 0.3, []int{4, 8, 16, 16, 16}},
		{"a disk that does four", func(n int) float64 { return float64(min(n, 4)) }, 0.3, []int{4, 8, 4, 4, 4}},
		{"a disk that suffers", func(n int) float64 { return 10 / float64(n) }, 0.3, []int{4, 2, 2}},
		{"one that does nothing", func(int) float64 { return 0 }, 0, []int{2, 2, 2}},
	} {
		tu := tuner{cores: 2, most: 16, measure: diskMeasure, workers: 2}
		var got []int
		for range test.want {
			tu.window(test.rate(tu.workers), test.busy)
			got = append(got, tu.workers)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestTunerRests: what was tried in vain is tried less and less often, and as often
// as at first once more workers have helped again.
func TestTunerRests(t *testing.T) {
	tu := tuner{cores: 2, most: 4, measure: diskMeasure, workers: 2}
	rests := func(gain float64) (n int) {
		for tu.window(1000, 0); tu.workers == 2; tu.window(1000, 0) {
			n++
		}
		tu.window(1000*gain, 0)
		return n
	}
	got := []int{rests(1), rests(1), rests(1), rests(2)}
	tu.workers = 2
	got = append(got, rests(1), rests(1))
	if want := []int{0, patience, 2 * patience, 4 * patience, 0, patience}; !slices.Equal(got, want) {
		t.Errorf("windows of rest before each trial: %v, want %v", got, want)
	}
	for range 20 {
		rests(1)
	}
	if n := rests(1); n != mostPatience {
		t.Errorf("%d windows at last, want %d", n, mostPatience)
	}
}

// stuck is a walk with a worker that is held up.
type stuck struct {
	t    *testing.T
	cold bool
}

func (s *stuck) Most() int         { return 16 }
func (s *stuck) Entries() int64    { return 1 }
func (s *stuck) Steady() bool      { return false }
func (s *stuck) Relieve() bool     { s.t.Error("adds a worker"); return false }
func (s *stuck) Shed(int)          { s.t.Error("asks workers to leave") }
func (s *stuck) SetCold(cold bool) { s.cold = cold }

// TestTuneCold: while a worker is held up, the walk is still told whether disks are read.
func TestTuneCold(t *testing.T) {
	s, tu := &stuck{t: t}, tuner{cores: 2, most: 16, left: 16, measure: diskMeasure, workers: 2}
	for read := range int64(3 * mostWindow) {
		tu.tick(s, 0, read)
	}
	if !s.cold {
		t.Error("disks are read, and it is not told")
	}
	for range 3 * mostWindow {
		tu.tick(s, 0, 3*mostWindow)
	}
	if s.cold {
		t.Error("disks are read no more, and it is not told")
	}
}

// played is a server, of which so many workers get rate entries a second.
type played struct {
	rate        func(workers int) float64
	most        int
	workers     int
	peak, added int
	entries     float64
	asked       time.Time
}

func (p *played) Entries() int64 {
	now := time.Now()
	p.entries += p.rate(p.workers) * now.Sub(p.asked).Seconds()
	p.asked = now
	return int64(p.entries)
}

func (p *played) Relieve() bool {
	p.Entries()
	p.workers++
	p.added++
	p.peak = max(p.peak, p.workers)
	return true
}

func (p *played) Shed(n int)   { p.Entries(); p.workers -= n }
func (p *played) Most() int    { return p.most }
func (p *played) Steady() bool { return true }
func (p *played) SetCold(bool) {}

// TestTuneServed: a server that has time gets as many workers as there may be, soon; one
// that has none is tried with twice as many, seldom; and when another run begins only those
// stay that there may be then.
func TestTuneServed(t *testing.T) {
	play := func(p *played, d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			p.most, p.workers, p.asked = 256, 48, time.Now()
			tu := tuner{cores: 2, most: 256, left: joins * 256, measure: serverMeasure, workers: 48}
			for range d / tuneEvery {
				time.Sleep(tuneEvery)
				tu.tick(p, 0, 0)
			}
		})
	}
	slow := &played{rate: func(n int) float64 { return float64(n) / 2e-3 }}
	if play(slow, 300*time.Millisecond); slow.workers != 256 || slow.peak != 256 || slow.added != 256-48 {
		t.Errorf("a slow server: %+v", slow)
	}
	quick := &played{rate: func(n int) float64 { return float64(min(n, 48)) / 2e-3 }}
	if play(quick, 10*time.Second); quick.workers != 48 || quick.peak != 96 || quick.added > 5*48 {
		t.Errorf("a quick server: %+v", quick)
	}
	crowded := &played{}
	crowded.rate = func(n int) float64 {
		if n == 256 {
			crowded.most = 48
		}
		return float64(n) / 2e-3
	}
	if play(crowded, time.Second); crowded.workers != 48 || crowded.peak != 256 || crowded.added != 256-48 {
		t.Errorf("beside another run: %+v", crowded)
	}
}
