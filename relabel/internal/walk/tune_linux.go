// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/tune"
)

const (
	// moment is how often the walk is looked at. A measurement, a window, takes
	// a few of them, and as many more as it takes to meet enough entries to say
	// something, half a second at most. The first moment after a change is not
	// counted.
	moment      = 10 * time.Millisecond
	leastWindow = 4
	mostWindow  = 50
	enough      = 1000 // entries
	// mostWorkers is where more of them gained nothing on any disk.
	mostWorkers = 16
	// joins bounds how many may be added in all; those who leave do not come
	// back.
	joins = 4 * mostWorkers
)

// tune has as many workers as is best until done is closed, or until one of them
// is held up: then others take its place, and no figure says anything. It looks every so
// often, and at the processor time that is used by then, and what disks were read.
func (k *Walk) tune(t tune.Tuner, every time.Duration, used func() (cpu time.Duration, read int64), done <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	left := joins
	for {
		began, entries, busy, reads := time.Now(), k.entries(), 0.0, false
		cpu, read := used()
		for i := 0; i < leastWindow || i < mostWindow && k.entries()-entries < enough; i++ {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			cpuNow, readNow := used()
			busy = (cpuNow - cpu).Seconds() / time.Since(began).Seconds()
			reads = readNow > read
			if reads && t.Idle(busy) {
				k.ahead.SetCold(true)
			}
		}
		if !reads { // in all of the window, for what was asked for ahead serves a while
			k.ahead.SetCold(false)
		}
		pool := k.handle()
		if pool == nil || k.anyHeldUp() {
			return
		}
		had := t.Workers
		switch now := t.Window(float64(k.entries()-entries)/time.Since(began).Seconds(), busy); {
		case now > had:
			for t.Workers = had; t.Workers < now && left > 0 && k.relieve(pool); left-- {
				t.Workers++
			}
			if t.Workers == had {
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
