// SPDX-License-Identifier: Apache-2.0

// Package budget shares workers and descriptors among all runs of a process.
//
// A run waits, in the order of arrival and as long as its context lets it, for one worker and the
// descriptors that it needs. It waits for nothing else, so runs cannot wait for each other. More
// are taken if they are there: all workers by a run that is alone, else half of the budget at
// most. While a run waits, others take none, and give back what they do not use.
//
// A worker whose call has not returned for a second, and a run that waits for its volume's lock,
// are counted apart: they keep no run from beginning, so frozen volumes cannot starve the others.
// What hangs is bounded by manyHung budgets; its descriptors stay counted.
package budget

import (
	"context"
	"slices"
	"sync"
)

const (
	RunFiles   = 12                    // of a run, without its walk: /proc, root, lock, clone, a mount beneath
	LeastFiles = 12                    // of a walk
	PerWorker  = 3                     // its directory, the parent, an entry
	least      = RunFiles + LeastFiles // of a share

	// manyHung budgets of hung workers, 5,120 by default, leave room to the 10,000
	// threads at which Go's runtime ends a process.
	manyHung = 16
)

// Budget is shared by runs. mu guards it and all shares in it.
type Budget struct {
	files func() int // how many descriptors there are for all

	mu      sync.Mutex
	most    int // workers
	working int // of them, those that are not held up
	hung    int
	open    int // descriptors in all shares, and AddOpen's
	shares  int
	queue   []*Share // of runs that wait
}

// New makes a budget of so many workers, and of as many descriptors as files returns.
func New(workers int, files func() int) *Budget { return &Budget{most: workers, files: files} }

// SetWorkers changes how many there are. Those at work go on.
func (b *Budget) SetWorkers(n int) {
	b.mu.Lock()
	defer b.unlock()
	b.most = n
}

// AddOpen counts n descriptors that are open outside the budget.
func (b *Budget) AddOpen(n int) {
	b.mu.Lock()
	defer b.unlock()
	b.open += n
}

// Taken returns what all shares have: workers that work, workers that hang, descriptors.
func (b *Budget) Taken() (working, hung, open int) {
	b.mu.Lock()
	defer b.unlock()
	return b.working, b.hung, b.open
}

// Share is one run's part. SetHung, Waits and Close do nothing on nil.
type Share struct {
	b       *Budget
	ready   chan struct{} // closed when the share is given
	workers int
	hung    int // of them
	files   int
	idle    bool // it waits for what hangs, or for a lock: whatever it has counts as hung
}

// Enter waits for a worker and the descriptors that a run needs.
func (b *Budget) Enter(ctx context.Context) (*Share, error) {
	s := &Share{b: b, ready: make(chan struct{})}
	b.mu.Lock()
	b.queue = append(b.queue, s)
	b.unlock()
	select {
	case <-s.ready:
		return s, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.unlock()
	at := slices.Index(b.queue, s)
	if at < 0 {
		return s, nil // it was given in between
	}
	b.queue = slices.Delete(b.queue, at, at+1)
	return nil, context.Cause(ctx)
}

// unlock releases mu after a change, by which others may have a share.
func (b *Budget) unlock() {
	b.serve()
	b.mu.Unlock()
}

// serve begins the runs that can have a share. mu is held.
func (b *Budget) serve() {
	for len(b.queue) > 0 {
		s := b.queue[0]
		if b.working >= b.most || b.hung >= manyHung*b.most || b.shares > 0 && b.open+least > b.files() {
			return
		}
		b.queue = b.queue[1:]
		b.shares++
		s.set(1, 0, least)
		close(s.ready)
	}
}

// set changes the share to these numbers. mu is held.
func (s *Share) set(workers, hung, files int) {
	if hung = min(hung, workers); s.idle {
		hung = workers
	}
	s.b.hung += hung - s.hung
	s.b.working += (workers - hung) - (s.workers - s.hung)
	s.b.open += files - s.files
	s.workers, s.hung, s.files = workers, hung, files
}

// Worker takes a worker more, and the descriptors that it needs, without waiting, and reports whether
// it could. A trial whether more of them pay leaves a fifth of all free: a run that comes begins at once.
func (s *Share) Worker(trial bool) bool {
	b := s.b
	b.mu.Lock()
	defer b.unlock()
	free := b.most
	if trial {
		free -= b.most / 5
	}
	if b.shares > 1 {
		free /= 2
	}
	more := max(0, RunFiles+2*PerWorker*(s.workers+1)-s.files)
	if len(b.queue) > 0 || s.idle || b.working+b.hung >= free || more > 0 && b.open+more > b.files() {
		return false
	}
	s.set(s.workers+1, s.hung, s.files+more)
	return true
}

// Alone reports whether no other run is at work, or waits to begin.
func (s *Share) Alone() bool {
	s.b.mu.Lock()
	defer s.b.unlock()
	return s.b.shares == 1 && len(s.b.queue) == 0
}

// Descriptors takes up to n more, at most half of what is left, and says how many.
func (s *Share) Descriptors(n int) int {
	b := s.b
	b.mu.Lock()
	defer b.unlock()
	if len(b.queue) > 0 {
		return 0
	}
	n = max(0, min(n, (b.files()-b.open)/2))
	s.set(s.workers, s.hung, s.files+n)
	return n
}

// all is more than any share has.
const all = 1 << 30

// Shrink releases what was taken since the beginning.
func (s *Share) Shrink() { s.release(all, 0) }

// Put releases a worker, unless it is the last.
func (s *Share) Put() { s.release(1, all) }

// Trim releases descriptors beyond n and those of the workers.
func (s *Share) Trim(n int) { s.release(0, n) }

// release releases so many workers, but for the last, and descriptors beyond files and the workers'.
func (s *Share) release(workers, files int) {
	s.b.mu.Lock()
	defer s.b.unlock()
	workers = min(s.workers, max(1, s.workers-workers)) // it has none once it is closed
	files = max(least, files+workers*PerWorker)
	s.set(workers, s.hung, min(s.files, files))
}

// SetHung records how many of the share's workers hang. It returns how many work if other runs wait
// for a share, else 0.
func (s *Share) SetHung(n int) (working int) {
	if s == nil {
		return 0
	}
	s.b.mu.Lock()
	defer s.b.unlock()
	s.set(s.workers, n, s.files)
	s.b.serve()
	if len(s.b.queue) == 0 {
		return 0
	}
	return max(1, s.workers-s.hung)
}

// Waits says that what is left of the run waits for calls that hang, or no more.
func (s *Share) Waits(is bool) {
	if s == nil {
		return
	}
	s.b.mu.Lock()
	defer s.b.unlock()
	s.idle = is
	s.set(s.workers, 0, s.files)
}

// Close releases everything.
func (s *Share) Close() {
	if s == nil {
		return
	}
	s.b.mu.Lock()
	defer s.b.unlock()
	s.set(0, 0, 0)
	s.b.shares--
}
