// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"
)

// share is which part of the time requests may wait together, beside each once. A pod
// that starts asks its plugins some five times in a second or two: if others' requests
// came before each, it would start 0.4 s later.
const share = 10

// allowance is how long requests wait. A tenth of each there always is: that is enough
// for a volume that has its label.
type allowance struct {
	each time.Duration // the most for one

	mu   sync.Mutex
	left time.Duration
	at   time.Time // when it was as much
}

// begin gives a request the time that there is; end takes what it has used.
func (a *allowance) begin(ctx context.Context) (_ context.Context, end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := time.Now()
	a.left = min(a.each, a.left+began.Sub(a.at)/share)
	a.at = began
	ctx, cancel := context.WithTimeout(ctx, max(a.left, a.each/share))
	return ctx, func() {
		cancel()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.left = max(0, a.left-time.Since(began))
	}
}
