// SPDX-License-Identifier: Apache-2.0

// Package steal is a pool of workers that take work from each other. It knows
// no files: what an item has open is the caller's to release. Below are the orderings that all
// rely on; test/mutants breaks each in turn, and a test notices.
package steal

// # Who owns what
//
// Each worker is a goroutine and owns its deque's newest end, its seat and its
// scan state. Everybody may take from anybody's deque; only the owner adds to
// it, and only while one of its own items (or its Begin) is pending. Run's
// goroutine owns the seeds before the workers start and what is left after they
// are gone; all else is shared: what is not atomic has a mutex. No mutex is locked
// inside another, and none while the caller's code runs.
//
// # Which orderings hold, and what breaks otherwise
//
// 1. Push makes an item visible, then looks whether anyone is idle. A worker
// announces that it is idle, then looks at all deques once more, then sleeps.
// One of the two sees the other (Dekker). If either did it the other way round:
//
//	pusher                     idle worker
//	                           looks: nothing
//	adds the item
//	looks: nobody is idle
//	                           announces, sleeps beside the item
//
// The item would wait for its owner, who may be in a system call for minutes.
//
// 2. Who takes an item after it announced passes on: it wakes another if any
// item is visible. For it may have been chosen to be woken for an item other
// than the one it found. With all busy at first:
//
//	pusher                     W                      V
//	adds a, nobody is idle
//	                                                  announces
//	                           announces, takes a
//	                                                  looks: nothing; sleeps
//	adds b, chooses W
//	                           withdraws, works on a
//
// and b would lie beside V. As it is, the worker chosen for b takes b, or takes
// another item and then sees b and wakes the next; none can sleep beside it.
//
// 3. pending goes up before an item is visible and down after it was worked on,
// with everything it pushed counted by then. So zero means that nothing is, and
// nothing will be. If it went up late or down early, all others could go home beside
// a running item, and the rest of the tree would be one worker's. Each Begin is pending
// too: it may push.
//
// 4. stopped is set, then the lot is closed; closing wakes all sleepers and
// prevents others from sleeping, under one lock. A worker looks at stopped before
// each item. Without closing, who slept at the stop sleeps for ever; if only
// those asleep were woken, who announces a moment later does.
//
// 5. Run drains the deques when the workers are gone, else an item pushed
// after the draining is lost. So Run waits for all, however long a worker's call hangs.
//
// 6. A worker that leaves because there are too many looks at nothing any more.
// What is in its deque is seen by the others: they look at all deques before
// they sleep, and one of them stays. So it leaves between two items, never when
// it was chosen by wake; and who may leave is decided under one mutex with who
// stays, else all could go.
//
// # What was rejected
//
// A Chase-Lev deque saves a lock, of the 110 ns that Push and take cost together
// (BenchmarkPushTake, 2 vCPU Xeon), where an item costs microseconds at least. One shared queue
// or a channel is breadth first, with as many open directories as the tree is wide. Polling takes
// the processors from those who make progress. One sync.Cond for all has a lock that every Push
// would take. Stealing half a deque moves items while others look for them, against ordering 1.

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Job has the caller's code for the work.
type Job[T any] struct {
	// Begin is called once in each worker's own goroutine and returns what works on an item, and
	// what is called there when the worker leaves, also after a panic. Begin may push. If it
	// fails or panics, end is not called and the pool stops.
	Begin func(w *Worker[T]) (do func(T), end func(), err error)

	// Spares limits the workers that Worker.AddWorker adds to the first, for as
	// long as the pool runs: one that left does not come back.
	Spares int
}

type pool[T any] struct {
	workers []*Worker[T] // nil for spares that were not called for
	alive   atomic.Int32 // how many there are, the first of workers
	begin   func(*Worker[T]) (func(T), func(), error)
	lot     lot
	pending atomic.Int64  // visible items, items worked on, workers not begun
	stopped atomic.Bool   // no further item is begun; mu guards its change
	noticed atomic.Bool   // Stopped said yes to someone
	gone    chan struct{} // gets one for each worker that left; has room for all
	surplus atomic.Int32  // workers that are to leave; mu guards its changes

	failed atomic.Pointer[error] // the first *Panic, or error of a Begin

	mu   sync.Mutex
	left int32 // workers that left because they were too many
}

// Run works on the seeds, and on all that is pushed by then, until nothing is pending. It begins
// with one worker, which takes the seeds in their order. It returns the items that no worker took,
// which only a stop leaves, so that the caller can release them.
//
// The error is the first *Panic or error of a Begin; else context.Cause(ctx) if a cancelled
// context left an item or was seen through Worker.Stopped; else nil.
func Run[T any](ctx context.Context, seeds []T, j Job[T]) (left []T, err error) {
	p := &pool[T]{
		begin:   j.Begin,
		gone:    make(chan struct{}, 1+j.Spares),
		workers: make([]*Worker[T], 1+j.Spares),
	}
	first := p.add()
	for _, item := range seeds {
		first.deque.pushOldest(item)
	}
	p.pending.Store(int64(len(seeds) + 1))
	cancelled := ctx.Done()
	if ctx.Err() != nil {
		p.halt() // before any item begins
	}
	go first.live()
	for gone := int32(0); gone < p.alive.Load(); {
		select {
		case <-p.gone:
			gone++
		case <-cancelled:
			p.halt()
			cancelled = nil
		}
	}
	for _, w := range p.working() {
		for item, ok := w.deque.takeOldest(); ok; item, ok = w.deque.takeOldest() {
			left = append(left, item)
		}
	}
	if failed := p.failed.Load(); failed != nil {
		return left, *failed
	}
	if p.pending.Load() != 0 || p.noticed.Load() { // which nothing else leaves
		return left, context.Cause(ctx)
	}
	return left, nil
}

// add is one worker more, which is not started. It is in its place before alive says so:
// others look at its deque from then on.
func (p *pool[T]) add() *Worker[T] {
	id := int(p.alive.Load())
	w := &Worker[T]{id: id, pool: p, seat: make(seat, 1), start: id}
	p.workers[id] = w
	p.alive.Store(int32(id + 1))
	return w
}

// finish ends a pending item, and the pool if that was the last.
func (p *pool[T]) finish() {
	pause()
	if p.pending.Add(-1) == 0 {
		pause()
		p.lot.close()
	}
}

func (p *pool[T]) fail(err error) {
	p.failed.CompareAndSwap(nil, &err)
	p.halt()
}

// halt stops the pool. With the mutex AddWorker adds none when all others
// may have left, and Run may have returned.
func (p *pool[T]) halt() {
	p.mu.Lock()
	p.stopped.Store(true)
	p.mu.Unlock()
	pause()
	p.lot.close()
}

func (p *pool[T]) working() []*Worker[T] { return p.workers[:p.alive.Load()] }

// passOn wakes a worker if there is anything to take (ordering 2).
func (p *pool[T]) passOn() {
	for _, w := range p.working() {
		if !w.deque.empty() {
			p.lot.wake()
			return
		}
	}
}

// Panic says that a worker panicked. What it was working on is not among the
// items that Run returns.
type Panic struct {
	Value any    // what was passed to panic
	Stack []byte // the worker's stack where it panicked
}

func (p *Panic) Error() string { return fmt.Sprintf("a worker panicked: %v\n\n%s", p.Value, p.Stack) }

// Unwrap is the error that was passed to panic, if it was one.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// guard calls f and turns a panic in it into a stop. runtime.Goexit does the
// same, but cannot be recovered: what must follow then has to be deferred.
func (p *pool[T]) guard(f func()) {
	returned := false
	defer func() {
		if returned {
			return
		}
		value := recover()
		if value == nil {
			value = errors.New("runtime.Goexit called")
		}
		p.fail(&Panic{Value: value, Stack: debug.Stack()})
	}()
	f()
	returned = true
}
