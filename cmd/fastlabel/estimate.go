// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"
)

// estimate says how fast a run is of late: what was seen in the last ten seconds.
type estimate struct {
	samples []sample // a second apart, the oldest first
}

type sample struct {
	at   time.Time
	seen int64
}

const (
	recent   = 10              // seconds that a rate is taken over
	earliest = 3 * time.Second // before that nothing is said of the time left
	farthest = 1000 * time.Hour
)

func newEstimate(began time.Time) estimate { return estimate{[]sample{{at: began}}} }

// add notes that so many were seen.
func (e *estimate) add(now time.Time, seen int64) {
	if now.Sub(e.samples[len(e.samples)-1].at) < time.Second {
		return
	}
	e.samples = append(e.samples, sample{now, seen})
	if len(e.samples) > recent+1 {
		e.samples = e.samples[1:]
	}
}

// rate is in entries a second.
func (e *estimate) rate(now time.Time, seen int64) float64 {
	from := e.samples[0]
	took := now.Sub(from.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(seen-from.seen) / took
}

// left is how long the rest takes at that rate, in whole seconds; 0 is not known.
func left(rest int64, rate float64) time.Duration {
	seconds := math.Ceil(float64(rest) / rate)
	if rest <= 0 || rate <= 0 || seconds > farthest.Seconds() {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
