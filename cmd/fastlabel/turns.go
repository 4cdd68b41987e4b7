// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
)

// inTurn does each of n things. The next begins when the one before has ended
// or says that it stalls. When all have begun, begun is called, and when all
// have ended inTurn returns. A million that do not stall take one goroutine.
func inTurn(n int, do func(i int, stalls func()), begun func()) {
	var all sync.WaitGroup
	last := make(chan struct{})
	var from func(i int)
	from = func(i int) {
		for ; i < n; i++ {
			var turn sync.Once
			passed := false
			do(i, func() {
				turn.Do(func() {
					passed = true
					all.Go(func() { from(i + 1) })
				})
			})
			turn.Do(func() {}) // who stalls from now on passes nothing on
			if passed {
				return
			}
		}
		close(last)
	}
	all.Go(func() { from(0) })
	<-last
	begun()
	all.Wait()
}

// labelAll labels the paths, or for verify and -n reads them: those first that
// name no served filesystem, and then those of each.
func (j *job) labelAll(ctx context.Context, paths []string) int {
	groups := byServer(paths)
	codes := make([]int, len(groups))
	inTurn(len(groups), func(i int, stalls func()) {
		codes[i] = j.labelGroup(ctx, groups[i], i > 0 || isPart(), stalls)
	}, func() {})
	return worstOf(codes)
}

// labelGroup labels paths, which may lead to a filesystem that hangs if served.
// One that another takes in is done with it: after it, and by itself if the
// other was not walked after all.
func (j *job) labelGroup(ctx context.Context, paths []string, served bool, begun func()) int {
	roots := covered(ctx, paths, served, j.settings)
	var order []int
	for _, covered := range []bool{false, true} {
		for i, r := range roots {
			if covered == (r.cover >= 0) {
				order = append(order, i)
			}
		}
	}
	codes, walked, done := make([]int, len(roots)), make([]bool, len(roots)), make([]chan struct{}, len(roots))
	for i := range done {
		done[i] = make(chan struct{})
	}
	inTurn(len(order), func(n int, stalls func()) {
		i := order[n]
		defer close(done[i])
		if by := cover(roots, i); by >= 0 {
			select {
			case <-done[by]:
			default:
				stalls()
				<-done[by]
			}
			if walked[by] {
				if j.verbose || j.json {
					j.skip(roots[i].path, roots[i].path, "done with "+words.Plain(roots[by].path))
				}
				return
			}
		}
		codes[i], walked[i] = j.one(ctx, roots[i].path, stalls)
	}, begun)
	return worstOf(codes)
}

// covered is coversOf. Where a look may hang, and does not return in time, none takes
// in another; else the outcome does not depend on how fast the machine is.
func covered(ctx context.Context, paths []string, served bool, s *settings) []root {
	if served && len(paths) == 1 {
		return bare(paths)
	}
	roots, ok := looks(ctx, served, func(at *atomic.Int64) []root { return coversOf(ctx, paths, s, at) })
	if !ok {
		return bare(paths)
	}
	return roots
}

// looks is what f returns, which counts its looks at files. It is not ok if ctx ends
// before or, where one may hang, if one does not return in time.
func looks[T any](ctx context.Context, may bool, f func(at *atomic.Int64) T) (result T, ok bool) {
	done := make(chan T, 1)
	var at atomic.Int64
	go func() { done <- f(&at) }()
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for last := int64(-1); ; {
		select {
		case result = <-done:
			return result, true
		case <-ctx.Done():
			return result, false
		case <-tick.C:
			now := at.Load()
			if may && now == last {
				return result, false
			}
			last = now
		}
	}
}

// bare has no path take in another.
func bare(paths []string) []root {
	roots := make([]root, len(paths))
	for i, p := range paths {
		roots[i] = root{p, -1}
	}
	return roots
}

func worstOf(codes []int) int {
	worst := exitDone
	for _, c := range codes {
		worst = worse(worst, c)
	}
	return worst
}
