// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// How many workers are best depends on what is in the way, and that is not known
// before: in memory as many as there are processors, on a cold disk some more (a
// tree on ext4 took 2.2 s with 2 and 1.6 with 8), or again not (one flat
// directory on XFS 4.8 and 6.6). So where the caller leaves it to us, the walk
// begins with one a processor. While the processors have nothing to do it tries
// twice as many, stays with them if they get on faster, and else goes back.

const (
	// moment is how often the walk is looked at. A measurement, a window, takes
	// a few of them, and as many more as it takes to meet enough entries to say
	// something, half a second at most. The first moment after a change is not
	// counted.
	moment      = 10 * time.Millisecond
	leastWindow = 4
	mostWindow  = 50
	enough      = 1000 // entries
	// saturated processors have no use for more workers.
	saturated = 0.8
	// worthwhile is how much faster more workers must be: two measurements
	// of the same lie some percent apart.
	worthwhile = 1.1
	// patience windows pass before more are tried again, for the next directory
	// may be another matter; and twice as many after each trial in vain.
	patience     = 10
	mostPatience = 640
	// mostWorkers is where more of them gained nothing on any disk.
	mostWorkers = 16
	// joins bounds how many may be added in all; those who leave do not come
	// back.
	joins = 4 * mostWorkers
)

// tuner decides. It knows neither clock nor pool, so that a test can play both.
type tuner struct {
	cores, most int
	workers     int     // at present
	before      int     // as many as there were before a trial
	base        float64 // entries a second then; 0: no trial is on
	rest        int     // windows until the next
	vain        int     // how long the last rest was
}

// window takes what a window showed, entries a second and how many processors
// were busy, and returns how many workers there are to be.
func (t *tuner) window(rate, busy float64) int {
	if t.base > 0 {
		gain := rate / t.base
		t.base = 0
		if gain < worthwhile {
			t.vain = min(max(patience, 2*t.vain), mostPatience)
			t.workers, t.rest = t.before, t.vain
			return t.workers
		}
		t.vain = 0
	} else if t.rest > 0 {
		t.rest--
		return t.workers
	}
	if rate > 0 && busy < saturated*float64(t.cores) && t.workers < t.most {
		t.base, t.before = rate, t.workers
		t.workers = min(2*t.workers, t.most)
	}
	return t.workers
}

// tune has as many workers as is best until done is closed, or until one of them
// is held up: then others take its place, and no figure says anything.
func (k *Walk) tune(t tuner, done <-chan struct{}) {
	every := moment
	if k.Kernel.Restless > 0 {
		every = k.Kernel.Restless
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	left := joins
	for {
		began, entries, cpu := time.Now(), k.entries(), sys.CPUTime()
		for i := 0; i < leastWindow || i < mostWindow && k.entries()-entries < enough; i++ {
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
		pool := k.handle()
		if pool == nil || k.anyHeldUp() {
			return
		}
		took := time.Since(began).Seconds()
		busy := (sys.CPUTime() - cpu).Seconds() / took
		if k.Kernel.Restless > 0 {
			busy = 0
		}
		had := t.workers
		switch now := t.window(float64(k.entries()-entries)/took, busy); {
		case now > had:
			for t.workers = had; t.workers < now && left > 0 && k.relieve(pool); left-- {
				t.workers++
			}
			if t.workers == had {
				return // no more can be added
			}
		case now < had:
			pool.Shed(had - now)
		default:
			continue
		}
		select { // it settles
		case <-done:
			return
		case <-tick.C:
		}
	}
}

// entries is how many were met so far.
func (k *Walk) entries() (n int64) {
	for w := range k.all {
		n += w.passed.Load()
	}
	return n
}

func (k *Walk) anyHeldUp() bool {
	for w := range k.all {
		if w.watched.HeldUp.Load() {
			return true
		}
	}
	return false
}
