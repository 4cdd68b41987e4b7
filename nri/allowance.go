// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"
)

const (
	// share is the part of the time that requests may wait together. A pod that starts asks
	// its plugins some five times in a second or two: if others' requests came before each,
	// it would start 0.4 s later.
	share = 10
	// free bounds the time that each request may wait for its volumes beside that: enough for those
	// that have their label, or next to no files.
	free = 20 * time.Millisecond
)

// allowance limits the time that requests may wait together.
type allowance struct {
	most time.Duration // that is saved up

	mu   sync.Mutex
	left time.Duration
	at   time.Time // when it was as much
}

// await receives what there is or comes in time: until ctx ends, and for what is left of
// the allowance beside least. That counts as waiting only if nothing comes.
func await[T any](ctx context.Context, a *allowance, least time.Duration, from <-chan T) (got T, in bool) {
	select {
	case got = <-from: // however little time is left
		return got, true
	default:
	}
	least = max(0, least)
	began := time.Now()
	a.mu.Lock()
	a.left = min(a.most, a.left+began.Sub(a.at)/share)
	a.at = began
	short, cancel := context.WithTimeout(ctx, least+a.left)
	a.mu.Unlock()
	defer cancel()
	select {
	case got = <-from:
		in = true
	case <-short.Done():
		select {
		case got = <-from: // at the same time
			in = true
		default:
		}
	}
	if !in {
		least = 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = max(0, a.left-max(0, time.Since(began)-least))
	return got, in
}
