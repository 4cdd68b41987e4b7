// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The rate is kept to, by one and by many, by those who oversleep, and whatever
// their number of entries.
func TestPacer(t *testing.T) {
	for _, c := range []struct {
		rate, workers, entries int
		late                   time.Duration
	}{
		{100, 1, 8, 0}, {100, 1, 1, 0}, {1000, 4, 8, time.Millisecond}, {50_000, 16, 8, 0}, {50_000, 48, 8, 100 * time.Microsecond}, {10, 48, 8, 0}, {1, 1, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := New(c.rate)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(max(2, 800/c.rate))*time.Second)
			defer cancel()
			var all sync.WaitGroup
			began := time.Now()
			done := make([]int, c.workers)
			for i := range c.workers {
				all.Go(func() {
					for {
						p.Wait(ctx, c.entries)
						if ctx.Err() != nil {
							return
						}
						time.Sleep(c.late)
						done[i] += c.entries
					}
				})
			}
			all.Wait()
			sum := 0
			for _, n := range done {
				sum += n
			}
			rate := float64(sum) / time.Since(began).Seconds()
			if rate < 0.9*float64(c.rate) || rate > 1.1*float64(c.rate) {
				t.Errorf("%+v: %.1f entries a second", c, rate)
			}
		})
	}
}

// Who waits is let go when its context ends.
func TestPacerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		p.Wait(ctx, 1000)
		p.Wait(ctx, 1000)
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
