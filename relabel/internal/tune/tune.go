// SPDX-License-Identifier: Apache-2.0

// Package tune chooses how many workers are at work.
//
// How many are best depends on what is in the way, and that is not known
// before: in memory as many as there are processors, on a cold disk some more (a
// tree on ext4 took 2.2 s with 2 and 1.6 with 8), or again not (one flat
// directory on XFS 4.8 and 6.6). So where the caller leaves it to us, the walk
// soon has one a processor, or 48 where calls wait for a server. While the processors
// have nothing to do it tries twice as many, stays with them if they get on faster, and
// else goes back.
package tune

import "runtime"

const (
	// saturated processors have no use for more workers.
	saturated = 0.8
	// saturatedServed is how much the walk takes of processors that are saturated where
	// the server runs on them too, or the kernel's threads for one: they take the rest.
	saturatedServed = 0.3
	// worthwhile is how much faster more workers must be: two measurements
	// of the same lie some percent apart.
	worthwhile = 1.1
	// worthwhileServed is that where calls wait for a server. One that has time is nearly
	// twice as fast for twice as many workers; with one that has none, whose rate changes
	// more than a disk's, measurements lie up to a fifth apart.
	worthwhileServed = 1.25
	// patience windows pass before more are tried again, for the next directory
	// may be another matter; and twice as many after each trial in vain.
	patience     = 10
	mostPatience = 640
)

// Processors are those that the process may use; a caller's GOMAXPROCS may be more.
func Processors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// Tuner decides. Window knows neither clock nor pool, so that a test can play both.
type Tuner struct {
	Cores, Most int
	Served      bool    // calls wait for a server, and not for a disk
	Workers     int     // at present
	before      int     // as many as there were before a trial
	base        float64 // entries a second then; 0: no trial is on
	rest        int     // windows until the next
	vain        int     // how long the last rest was
}

// Bound sets how many workers there may be from now on, and returns how many are too many.
func (t *Tuner) Bound(most int) (over int) {
	if t.Most = most; t.Workers <= most {
		return 0
	}
	over = t.Workers - most
	t.Workers, t.base = most, 0
	return over
}

func (t *Tuner) worthwhile() float64 {
	if t.Served {
		return worthwhileServed
	}
	return worthwhile
}

// Idle says whether the processors, of which so many were busy, have time for more.
func (t *Tuner) Idle(busy float64) bool {
	most := saturated
	if t.Served {
		most = saturatedServed
	}
	return busy < most*float64(t.Cores)
}

// Window takes what a window showed, entries a second and how many processors
// were busy, and returns how many workers there are to be.
func (t *Tuner) Window(rate, busy float64) int {
	if t.base > 0 {
		gain := rate / t.base
		t.base = 0
		if gain < t.worthwhile() {
			t.vain = min(max(patience, 2*t.vain), mostPatience)
			t.Workers, t.rest = t.before, t.vain
			return t.Workers
		}
		t.vain = 0
	} else if t.rest > 0 {
		t.rest--
		return t.Workers
	}
	if rate > 0 && t.Idle(busy) && t.Workers < t.Most {
		t.base, t.before = rate, t.Workers
		t.Workers = min(2*t.Workers, t.Most)
	}
	return t.Workers
}
