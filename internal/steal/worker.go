// SPDX-License-Identifier: Apache-2.0

package steal

import "sync/atomic"

// Worker is one goroutine of the pool with a deque of its own. Its methods are
// for that goroutine, in Job.Begin and in the function that Begin returned.
type Worker[T any] struct {
	id    int // from 0 to Job.Spares
	pool  *pool[T]
	deque deque[T]
	seat  seat
	start int // the worker that the next scan asks first
}

// Push adds an item that the owner takes next.
func (w *Worker[T]) Push(item T) { w.add(item, w.deque.pushNewest) }

// PushOldest adds an item that is the first to be stolen and the last that the owner takes.
func (w *Worker[T]) PushOldest(item T) { w.add(item, w.deque.pushOldest) }

func (w *Worker[T]) add(item T, push func(T)) {
	w.pool.pending.Add(1) // before anyone can see it, hence finish it
	pause()
	push(item)
	pause()
	w.pool.lot.wake() // after it can be seen
}

// Stopped reports whether the pool was stopped, so that the item at hand had better be finished
// soon. After a yes work may be left undone, so Run will not report that all is finished.
func (w *Worker[T]) Stopped() bool {
	if !w.pool.stopped.Load() {
		return false
	}
	w.pool.noticed.Store(true)
	return true
}

// StopFlag is set once the pool is stopped: for a loop that can call nothing.
// A worker that sees it set asks Stopped before it leaves work undone.
func (w *Worker[T]) StopFlag() *atomic.Bool { return &w.pool.stopped }

// AddWorker starts one more worker. It may be called from any goroutine. It does nothing, and
// says so, when Job.Spares are used up, nothing is pending, or the pool is stopped.
func (w *Worker[T]) AddWorker() bool {
	p := w.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped.Load() || int(p.alive.Load()) == len(p.workers) {
		return false
	}
	// Its beginning is pending like that of the others; but nothing may
	// become pending once nothing is.
	for n := p.pending.Load(); ; n = p.pending.Load() {
		if n == 0 {
			return false
		}
		if p.pending.CompareAndSwap(n, n+1) {
			break
		}
	}
	p.surplus.Store(0) // whom it replaces does no work: nobody is too many
	go p.add().live()
	return true
}

// Dismiss asks n workers to leave once they are done with the item at hand, or as
// many as leave one. It says how many, and may be called from any goroutine.
func (w *Worker[T]) Dismiss(n int) int {
	p := w.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	n = max(0, min(n, int(p.alive.Load()-p.left-p.surplus.Load())-1))
	p.surplus.Add(int32(n))
	return n
}

// tooMany reports whether this worker is to leave.
func (w *Worker[T]) tooMany() bool {
	p := w.pool
	if p.surplus.Load() == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.surplus.Load() == 0 {
		return false
	}
	p.surplus.Add(-1)
	p.left++
	return true
}

func (w *Worker[T]) live() {
	p := w.pool
	defer func() { p.gone <- struct{}{} }()
	if p.stopped.Load() {
		p.finish()
		return
	}
	p.guard(func() {
		do, end, err := p.begin(w)
		if err != nil {
			p.fail(err)
			return
		}
		defer p.guard(end) // deferred, for runtime.Goexit passes through guard
		p.guard(func() {
			p.finish() // what was counted for this worker's beginning
			for !p.stopped.Load() && !w.tooMany() {
				item, ok := w.next()
				if !ok {
					return
				}
				pause()
				do(item)
				p.finish()
			}
		})
	})
}

// next waits for an item to work on; not ok means that there will be none.
func (w *Worker[T]) next() (item T, ok bool) {
	if item, ok = w.deque.takeNewest(); ok {
		return item, true
	}
	if item, ok = w.steal(); ok {
		return item, true
	}
	lot := &w.pool.lot
	for lot.announce(w.seat) {
		pause()
		if item, ok = w.steal(); ok {
			pause()
			lot.withdraw(w.seat)
			w.pool.passOn()
			return item, true
		}
		pause()
		<-w.seat
	}
	return item, false
}

// steal takes the oldest item of the first other worker that has any. The start
// rotates, lest all thieves queue at the same victim's lock.
func (w *Worker[T]) steal() (item T, ok bool) {
	w.start++
	all := w.pool.working()
	for i := range all {
		victim := all[(w.start+i)%len(all)]
		if victim == w {
			continue
		}
		if item, ok = victim.deque.takeOldest(); ok {
			return item, true
		}
	}
	return item, false
}
