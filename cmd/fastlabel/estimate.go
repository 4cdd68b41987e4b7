// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"
)

// estimate says how fast a run is, and how long it may still take.
type estimate struct {
	samples []sample // a second apart, the last minute's
	first   sample   // the beginning
}

type sample struct {
	at   time.Time
	seen int64
}

const (
	recent   = 5 * time.Second  // what a rate is taken over
	lately   = 30 * time.Second // and a second opinion
	earliest = 3 * time.Second  // before that nothing is said of the time left
	wide     = 4                // nor where opinions differ by more
)

func newEstimate(began time.Time) estimate { return estimate{first: sample{at: began}} }

// add notes that so many were seen.
func (e *estimate) add(now time.Time, seen int64) {
	last := e.first
	if n := len(e.samples); n > 0 {
		last = e.samples[n-1]
	}
	if now.Sub(last.at) < time.Second {
		return
	}
	e.samples = append(e.samples, sample{now, seen})
	if len(e.samples) > 60 {
		e.samples = e.samples[1:]
	}
}

// over is the rate of the last d, in entries a second.
func (e *estimate) over(d time.Duration, now time.Time, seen int64) float64 {
	from := e.first
	for _, s := range e.samples {
		if now.Sub(s.at) < d {
			break
		}
		from = s
	}
	took := now.Sub(from.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(seen-from.seen) / took
}

// left is the least and the most time that the rest may take; not ok where
// nobody can tell. The rest is as many entries as are not seen yet.
func (e *estimate) left(now time.Time, seen, total int64) (least, most time.Duration, ok bool) {
	rest := total - seen
	if rest <= 0 || now.Sub(e.first.at) < earliest {
		return 0, 0, false
	}
	slow, fast := 0.0, 0.0
	for i, d := range []time.Duration{recent, lately, now.Sub(e.first.at)} {
		rate := e.over(d, now, seen)
		if rate <= 0 {
			return 0, 0, false
		}
		if i == 0 || rate < slow {
			slow = rate
		}
		fast = max(fast, rate)
	}
	if fast > wide*slow {
		return 0, 0, false
	}
	// What was the same for a while need not stay so.
	secs := float64(rest) * float64(time.Second)
	if secs/slow > float64(1000*time.Hour) {
		return 0, 0, false
	}
	return time.Duration(0.9 * secs / fast), time.Duration(1.1 * secs / slow), true
}

// between words a span of time, no finer than it is known.
func between(least, most time.Duration) string {
	unit, step, name := time.Second, time.Duration(10), "s"
	switch {
	case most > 100*time.Minute:
		unit, step, name = time.Hour, 1, "h"
	case most > 100*time.Second:
		unit, step, name = time.Minute, 1, "min"
	}
	step *= unit
	from, to := least/step*step/unit, (most+step-1)/step*step/unit
	if from == 0 {
		return fmt.Sprintf("less than %d %s left", to, name)
	}
	return fmt.Sprintf("%d to %d %s left", from, to, name)
}
