// SPDX-License-Identifier: Apache-2.0

package tune

import "time"

const (
	// Every is how often the pool is looked at. A measurement, a window, takes
	// a few of them, and as many more as it takes to meet enough entries to say
	// something, half a second at most. The first moment after a change is not
	// counted.
	Every       = 10 * time.Millisecond
	leastWindow = 4
	mostWindow  = 50
	enough      = 1000 // entries; half of it where calls wait for a server
	// MostWorkers is where more of them gained nothing on any disk.
	MostWorkers = 16
	// joins bounds, with the most workers at once, how many may be added in all; those
	// who leave do not come back.
	joins = 4
)

func (t *Tuner) enough() int64 {
	if t.Served {
		return enough / 2
	}
	return enough
}

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
	settle := func() (ended bool) {
		select {
		case <-done:
			return true
		case <-tick.C:
			return false
		}
	}
	for p.Entries() == 0 { // on a slow server the beginning takes longer than a window
		if settle() {
			return
		}
	}
	for left, tunes := Joins(t.Most), true; ; {
		began, entries, busy, reads := time.Now(), p.Entries(), 0.0, false
		cpu, read := used()
		for i := 0; i < leastWindow || i < mostWindow && p.Entries()-entries < t.enough(); i++ {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			cpuNow, readNow := used()
			busy = (cpuNow - cpu).Seconds() / time.Since(began).Seconds()
			reads = readNow > read
			if reads && t.Idle(busy) {
				p.ReadCold(true)
			}
		}
		if !reads { // in all of the window, for what was asked for ahead serves a while
			p.ReadCold(false)
		}
		if over := t.Bound(p.Most()); over > 0 { // another run has begun
			p.Shed(over)
			if settle() {
				return
			}
			continue
		}
		if tunes = tunes && p.Steady(); !tunes {
			continue
		}
		had := t.Workers
		switch now := t.Window(float64(p.Entries()-entries)/time.Since(began).Seconds(), busy); {
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
		if settle() {
			return
		}
	}
}
