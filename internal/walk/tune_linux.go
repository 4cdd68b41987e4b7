// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"runtime"
	"time"

	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/sys"
)

// How many workers are best is not known before: in memory as many as there are processors, on a
// cold disk some more (a tree on ext4 took 2.2 s with 2 and 1.6 with 8), or again not (one flat
// directory on XFS 4.8 and 6.6). So where the caller leaves it to us, the walk soon has one a
// processor, or 48 where calls wait for a server. While the processors have nothing to do it tries
// twice as many, stays with them if they get on faster, and else goes back.

const (
	// tuneEvery is a tick. A measurement takes a few, and as many more as it takes to see
	// enough entries, half a second at most. The tick between two measurements is not
	// counted: the workers may have changed.
	tuneEvery  = 10 * time.Millisecond
	leastTicks = 4
	mostTicks  = 50
	// mostWorkers: more of them gained nothing on any disk.
	mostWorkers = 16
	// joins bounds, with the most workers at once, how many may be added in all; those
	// who leave do not come back.
	joins = 4
	// patience measurements pass before more are tried again, for the next directory
	// may be another matter; and twice as many after each trial in vain.
	patience     = 10
	mostPatience = 640
)

// measure has what figures are compared with: a disk's, or a server's.
type measure struct {
	enough     int64   // entries in a measurement
	saturated  float64 // part of the processors that leaves no use for more workers
	worthwhile float64 // how much faster more workers must be
}

var (
	// Two measurements of the same disk lie some percent apart.
	diskMeasure = measure{enough: 1000, saturated: 0.8, worthwhile: 1.1}
	// A server may run on the processors too, or the kernel's threads for it do, and takes
	// what the walk leaves of them. One that has time is nearly twice as fast for twice as
	// many workers; with one that has none, whose rate changes more than a disk's,
	// measurements lie up to a fifth apart.
	serverMeasure = measure{enough: 500, saturated: 0.3, worthwhile: 1.25}
)

// processors are those that the process may use; a caller's GOMAXPROCS may be more.
func processors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// figures describe a walk at a tick.
type figures struct {
	entries int64         // seen so far
	most    int           // how many workers there may be now
	steady  bool          // there are workers, and all get on
	cpu     time.Duration // that the process has used
	read    int64         // how much it has read from disks
}

// tuner decides how many workers there are. It has no walk, and decide no clock.
type tuner struct {
	cores, most int
	measure     measure
	workers     int     // at present
	before      int     // as many as there were before a trial
	base        float64 // entries a second then; 0: no trial is on
	rest        int     // measurements until the next
	vain        int     // how long the last rest was
	left        int     // workers that may be added yet

	ticks int // of the measurement so far; 0: the next one begins it
	began time.Time
	first figures // when it began
	cold  bool    // see disk
}

// idle reports whether the processors, of which so many were busy, have time for more.
func (t *tuner) idle(busy float64) bool { return busy < t.measure.saturated*float64(t.cores) }

// decide sets how many workers there are to be, by entries a second and how many processors were busy.
func (t *tuner) decide(rate, busy float64) {
	if t.base > 0 {
		gain := rate / t.base
		t.base = 0
		if gain < t.measure.worthwhile {
			t.vain = min(max(patience, 2*t.vain), mostPatience)
			t.workers, t.rest = t.before, t.vain
			return
		}
		t.vain = 0
	} else if t.rest > 0 {
		t.rest--
		return
	}
	if rate > 0 && t.idle(busy) && t.workers < t.most {
		t.base, t.before = rate, t.workers
		t.workers = min(2*t.workers, t.most)
	}
}

// tick takes the figures, and sets how many workers there are to be, and whether disks are read while
// the processors have nothing to do. While a call hangs no figure says anything.
func (t *tuner) tick(f figures) {
	now := time.Now()
	switch {
	case f.entries == 0: // on a slow server the beginning takes longer than a measurement
		return
	case t.ticks == 0:
		t.ticks, t.began, t.first = 1, now, f
		return
	}
	elapsed, seen := now.Sub(t.began).Seconds(), f.entries-t.first.entries
	busy, reads := (f.cpu-t.first.cpu).Seconds()/elapsed, f.read > t.first.read
	if reads && t.idle(busy) {
		t.cold = true
	}
	if t.ticks++; t.ticks <= leastTicks || t.ticks <= mostTicks && seen < t.measure.enough {
		return
	}
	t.ticks = 0
	if !reads { // in all of the measurement, for what was asked for ahead serves a while
		t.cold = false
	}
	if t.most = f.most; t.workers > t.most { // another run has begun
		t.workers, t.base = t.most, 0
	} else if f.steady {
		t.decide(float64(seen)/elapsed, busy)
	}
}

// tune tunes from the first tick on, before which most walks are over, until end is called.
func (k *Walk) tune() (end func()) {
	t := tuner{cores: processors(), most: k.most, left: joins * k.most, measure: diskMeasure, workers: k.begin}
	if k.mount.Served {
		t.measure = serverMeasure
	}
	return run.Repeat(tuneEvery, func() { k.adjust(&t) })
}

func (k *Walk) adjust(t *tuner) {
	had := t.workers
	t.tick(k.figures())
	k.disk.cold.Store(t.cold)
	if t.workers < had {
		k.pool.Load().Dismiss(had - t.workers)
	}
	for n := had; n < t.workers; n++ {
		if t.left == 0 || !k.add(true) {
			t.workers = n
			return
		}
		t.left--
	}
}

// figures counts the entries of the rows at hand too: on a slow server a row takes longer
// than a measurement.
func (k *Walk) figures() figures {
	f := figures{most: k.most, steady: k.pool.Load() != nil}
	if !k.share.Alone() {
		f.most = min(k.most, max(k.begin, mostWorkers))
	}
	for _, p := range k.all() {
		if p.seen.HeldUp.Load() {
			f.steady = false
		}
		t, inRow := p.counted()
		f.entries += t.Seen + int64(inRow)
	}
	f.cpu, f.read = sys.Usage()
	return f
}
