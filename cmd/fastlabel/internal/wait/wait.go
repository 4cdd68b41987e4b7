// SPDX-License-Identifier: Apache-2.0

// Package wait waits for what may hang no longer than it should.
package wait

import (
	"context"
	"sync/atomic"
	"time"
)

// Patience is how long a filesystem that may hang may take to answer before what
// does not need it is done first.
const Patience = time.Second

// Grace is the time that an answer may take that is under way when ctx ends.
const Grace = 300 * time.Millisecond

// Within is f's result, or ctx's end if that comes first: f may hang, on a pipe that is
// not closed or a server that is gone, and is then left behind.
func Within[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	r, _, ok := Looks(ctx, 0, func(*atomic.Int64) result {
		value, err := f()
		return result{value, err}
	})
	if !ok {
		r.err = context.Cause(ctx)
	}
	return r.value, r.err
}

// Linger is ctx, but ends so much later: for an answer that is under way.
func Linger(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return late, func() { stop(); cancel() }
}

// Looks is what f returns, which stores in at how many looks at files it has begun. It
// is not ok if ctx ends before or, with patience, if one look takes longer than that.
func Looks[T any](ctx context.Context, patience time.Duration, f func(at *atomic.Int64) T) (result T, at int64, ok bool) {
	done := make(chan T, 1)
	var begun atomic.Int64
	go func() { done <- f(&begun) }()
	var tick <-chan time.Time
	if patience > 0 {
		tick = time.Tick(patience)
	}
	for last := int64(-1); ; last = at {
		select {
		case result = <-done:
			return result, begun.Load(), true
		case <-ctx.Done():
			return result, begun.Load(), false
		case <-tick:
			if at = begun.Load(); at == last {
				return result, at, false
			}
		}
	}
}
