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

import (
	"runtime"
	"time"
)

const (
	// Every is how often the pool is looked at. A measurement, a window, takes
	// a few of them, and as many more as it takes to meet enough entries to say
	// something, half a second at most. The first moment after a change is not
	// counted.
	Every       = 10 * time.Millisecond
	leastWindow = 4
	mostWindow  = 50
	// MostWorkers is where more of them gained nothing on any disk.
	MostWorkers = 16
	// joins bounds, with the most workers at once, how many may be added in all; those
	// who leave do not come back.
	joins = 4
	// patience windows pass before more are tried again, for the next directory
	// may be another matter; and twice as many after each trial in vain.
	patience     = 10
	mostPatience = 640
)

// measure is what figures are held against.
type measure struct {
	enough     int64   // entries in a window
	saturated  float64 // part of the processors that leaves no use for more workers
	worthwhile float64 // how much faster more workers must be
}

var (
	// disk: two measurements of the same lie some percent apart.
	disk = measure{enough: 1000, saturated: 0.8, worthwhile: 1.1}
	// server: it may run on the processors too, or the kernel's threads for it do, and takes
	// what the walk leaves of them. One that has time is nearly twice as fast for twice as many
	// workers; with one that has none, whose rate changes more than a disk's, measurements
	// lie up to a fifth apart.
	server = measure{enough: 500, saturated: 0.3, worthwhile: 1.25}
)

// Processors are those that the process may use; a caller's GOMAXPROCS may be more.
func Processors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// Joins returns how many workers are added in all, where there are most at once.
func Joins(most int) int { return joins * most }

// Pool is what has the workers. It is asked by one goroutine.
type Pool interface {
	Most() int          // how many workers there may be now
	Entries() int64     // that were met so far
	Steady() bool       // there are workers, and none is held up
	Relieve() bool      // adds one, if that can be
	Shed(n int)         // asks so many to leave
	ReadCold(cold bool) // says whether disks are read, and the processors have nothing to do
}

// Tuner decides; window does so without clock and pool.
type Tuner struct {
	Cores, Most int
	Served      bool    // calls wait for a server, and not for a disk
	Workers     int     // at present
	before      int     // as many as there were before a trial
	base        float64 // entries a second then; 0: no trial is on
	rest        int     // windows until the next
	vain        int     // how long the last rest was
}

func (t *Tuner) measure() measure {
	if t.Served {
		return server
	}
	return disk
}

// idle says whether the processors, of which so many were busy, have time for more.
func (t *Tuner) idle(busy float64) bool { return busy < t.measure().saturated*float64(t.Cores) }

// window takes what a window showed, entries a second and how many processors
// were busy, and sets how many workers there are to be.
func (t *Tuner) window(rate, busy float64) {
	if t.base > 0 {
		gain := rate / t.base
		t.base = 0
		if gain < t.measure().worthwhile {
			t.vain = min(max(patience, 2*t.vain), mostPatience)
			t.Workers, t.rest = t.before, t.vain
			return
		}
		t.vain = 0
	} else if t.rest > 0 {
		t.rest--
		return
	}
	if rate > 0 && t.idle(busy) && t.Workers < t.Most {
		t.base, t.before = rate, t.Workers
		t.Workers = min(2*t.Workers, t.Most)
	}
}

// Start has Tune at work from the first tick on until end is called, which waits for it.
// Most walks are over before.
func (t Tuner) Start(p Pool, used func() (cpu time.Duration, read int64)) (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	begin := time.AfterFunc(Every, func() {
		defer close(ended)
		t.Tune(p, Every, used, done)
	})
	return func() {
		close(done)
		if !begin.Stop() {
			<-ended
		}
	}
}

// Tune keeps p at the best number of workers until a worker is held up, for then others
// take its place, and no figure says anything, or until no more can be added. Until done is
// closed it says whether disks are read. It looks at p at each tick of every; used tells the
// processor time so far, and how much was read from disks.
func (t Tuner) Tune(p Pool, every time.Duration, used func() (cpu time.Duration, read int64), done <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	over := func() bool { // or a tick has passed
		select {
		case <-done:
			return true
		case <-tick.C:
			return false
		}
	}
	for p.Entries() == 0 { // on a slow server the beginning takes longer than a window
		if over() {
			return
		}
	}
	for left, tunes := Joins(t.Most), true; ; {
		began, entries, busy, reads := time.Now(), p.Entries(), 0.0, false
		cpu, read := used()
		for i := 0; i < leastWindow || i < mostWindow && p.Entries()-entries < t.measure().enough; i++ {
			if over() {
				return
			}
			cpuNow, readNow := used()
			busy = (cpuNow - cpu).Seconds() / time.Since(began).Seconds()
			reads = readNow > read
			if reads && t.idle(busy) {
				p.ReadCold(true)
			}
		}
		if !reads { // in all of the window, for what was asked for ahead serves a while
			p.ReadCold(false)
		}
		had := t.Workers
		if t.Most = p.Most(); had > t.Most { // another run has begun
			t.Workers, t.base = t.Most, 0
		} else if tunes = tunes && p.Steady(); tunes {
			t.window(float64(p.Entries()-entries)/time.Since(began).Seconds(), busy)
		}
		switch now := t.Workers; {
		case now > had:
			for t.Workers = had; t.Workers < now && left > 0 && p.Relieve(); left-- {
				t.Workers++
			}
			tunes = t.Workers > had
		case now < had:
			p.Shed(had - now)
		default:
			continue
		}
		if over() {
			return
		}
	}
}
