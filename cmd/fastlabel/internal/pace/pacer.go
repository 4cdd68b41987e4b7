// SPDX-License-Identifier: Apache-2.0

// Package pace holds a run back: to a rate, while others wait for I/O, and to
// what is left of processor and disk.
package pace

import (
	"context"
	"sync"
	"time"
)

// Pacer holds entries back to a rate, all workers and all PATHs together. Each
// that asks gets the next free time, in the order of asking, and waits for it
// without the lock.
type Pacer struct {
	rate float64 // --max-rate, in entries a second; 0: no limit

	mu      sync.Mutex
	limit   float64   // what holds at present, rate or less; 0: no limit
	next    time.Time // is free
	granted int64
}

// behind is how much of what was slept too long is made up for. A timer comes a
// millisecond late, a busy machine's later.
const behind = 200 * time.Millisecond

func New(rate int) *Pacer { return &Pacer{rate: float64(rate), limit: float64(rate)} }

// Wait returns when so many entries may be worked on, or ctx ends.
func (p *Pacer) Wait(ctx context.Context, entries int) {
	if d := p.turn(time.Now(), entries); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
		}
	}
}

// turn is how long from now on the caller has to wait.
func (p *Pacer) turn(now time.Time, entries int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.granted += int64(entries)
	if p.limit <= 0 {
		p.next = now
		return 0
	}
	if earliest := now.Add(-behind); p.next.Before(earliest) {
		p.next = now
	}
	at := p.next
	p.next = at.Add(time.Duration(float64(entries) / p.limit * float64(time.Second)))
	return at.Sub(now)
}

// done is how many entries were let through so far.
func (p *Pacer) done() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.granted
}

// hold makes limit the rate, or --max-rate if that is less or limit is 0.
func (p *Pacer) hold(limit float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate > 0 && (limit <= 0 || limit > p.rate) {
		limit = p.rate
	}
	p.limit = limit
}
