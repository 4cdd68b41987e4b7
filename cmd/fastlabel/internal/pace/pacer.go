// SPDX-License-Identifier: Apache-2.0

// Package pace holds a run back to a rate.
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
	rate float64 // in entries a second

	mu   sync.Mutex
	next time.Time // is free
}

// behind is how much of what was slept too long is made up for. A timer comes a
// millisecond late, a busy machine's later.
const behind = 200 * time.Millisecond

// New returns a Pacer that lets through at most rate entries a second.
func New(rate int) *Pacer { return &Pacer{rate: float64(rate)} }

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
	if earliest := now.Add(-behind); p.next.Before(earliest) {
		p.next = now
	}
	at := p.next
	p.next = at.Add(time.Duration(float64(entries) / p.rate * float64(time.Second)))
	return at.Sub(now)
}
