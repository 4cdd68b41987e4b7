// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

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
			tu.decide(test.rate(tu.workers), test.busy)
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
		for tu.decide(1000, 0); tu.workers == 2; tu.decide(1000, 0) {
			n++
		}
		tu.decide(1000*gain, 0)
		return n
	}
	got := []int{rests(1), rests(1), rests(1), rests(2)}
	tu.workers = 2
	got = append(got, rests(1), rests(1))
	if want := []int{0, patience, 2 * patience, 4 * patience, 0, patience}; !slices.Equal(got, want) {
		t.Errorf("measurements of rest before each trial: %v, want %v", got, want)
	}
	for range 20 {
		rests(1)
	}
	if n := rests(1); n != mostPatience {
		t.Errorf("%d measurements at last, want %d", n, mostPatience)
	}
}

// TestTuneCold: while a worker is held up there are no more and no fewer, and it is known
// whether disks are read.
func TestTuneCold(t *testing.T) {
	tu := tuner{cores: 2, most: 16, measure: diskMeasure, workers: 2}
	f := figures{entries: 1, most: 16}
	for _, reads := range []bool{true, false} {
		for range 3 * mostTicks {
			if reads {
				f.read++
			}
			tu.tick(f)
		}
		if tu.cold != reads || tu.workers != 2 {
			t.Errorf("disks are read: %t, but %t is known; %d workers", reads, tu.cold, tu.workers)
		}
	}
}

// TestTuneServed: a server that has time gets as many workers as there may be, soon; one
// that has none is tried with twice as many, seldom; and when another run begins only those
// stay that there may be then.
func TestTuneServed(t *testing.T) {
	// play returns how many workers there were at last, at most, and were added in all.
	play := func(d time.Duration, rate func(workers int) float64, most func(peak int) int) (workers, peak, added int) {
		synctest.Test(t, func(*testing.T) {
			tu := tuner{cores: 2, most: 256, measure: serverMeasure, workers: 48}
			entries := 0.0
			for range d / tuneEvery {
				time.Sleep(tuneEvery)
				had := tu.workers
				entries += rate(had) * tuneEvery.Seconds()
				tu.tick(figures{entries: int64(entries), most: most(peak), steady: true})
				added += max(0, tu.workers-had)
				peak = max(peak, tu.workers)
			}
			workers = tu.workers
		})
		return workers, peak, added
	}
	alone := func(int) int { return 256 }
	slow := func(n int) float64 { return float64(n) / 2e-3 }
	if workers, peak, added := play(300*time.Millisecond, slow, alone); workers != 256 || peak != 256 || added != 256-48 {
		t.Errorf("a slow server: %d workers, %d at most, %d added", workers, peak, added)
	}
	quick := func(n int) float64 { return float64(min(n, 48)) / 2e-3 }
	if workers, peak, added := play(10*time.Second, quick, alone); workers != 48 || peak != 96 || added > 5*48 {
		t.Errorf("a quick server: %d workers, %d at most, %d added", workers, peak, added)
	}
	crowded := func(peak int) int {
		if peak == 256 {
			return 48
		}
		return 256
	}
	if workers, peak, added := play(time.Second, slow, crowded); workers != 48 || peak != 256 || added != 256-48 {
		t.Errorf("beside another run: %d workers, %d at most, %d added", workers, peak, added)
	}
}
