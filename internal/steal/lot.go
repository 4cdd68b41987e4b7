// SPDX-License-Identifier: Apache-2.0

package steal

import (
	"slices"
	"sync"
	"sync/atomic"
)

// seat is the place where one worker sleeps. A worker that takes a seat off the lot's list
// owes it exactly one token; one that sits down takes exactly one. A token is thus
// never lost, never doubled, and sending it never blocks: the channel has room for one.
type seat chan struct{}

// lot lists the seats of idle workers. It is the second half of the protocol
// in pool.go: a worker is listed before it looks at the deques a last time.
type lot struct {
	idle atomic.Int32 // len(seats), to be read without the lock by Push

	mu     sync.Mutex
	seats  []seat // the idle, most recent last
	closed bool   // no worker sleeps any more
}

// announce lists s as idle, unless the lot is closed.
func (l *lot) announce(s seat) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.seats = append(l.seats, s)
	l.idle.Store(int32(len(l.seats)))
	return true
}

// withdraw takes s off the list, or takes the token that is owed if another
// worker did so before.
func (l *lot) withdraw(s seat) {
	l.mu.Lock()
	at := slices.Index(l.seats, s)
	if at >= 0 {
		l.seats = slices.Delete(l.seats, at, at+1)
		l.idle.Store(int32(len(l.seats)))
	}
	l.mu.Unlock()
	if at < 0 {
		<-s
	}
}

// wake wakes one idle worker, the most recent (its caches are the warmest). When all are busy it
// is one load.
func (l *lot) wake() {
	if l.idle.Load() == 0 {
		return
	}
	l.mu.Lock()
	last := len(l.seats) - 1
	if last < 0 {
		l.mu.Unlock()
		return
	}
	s := l.seats[last]
	l.seats = l.seats[:last]
	l.idle.Store(int32(last))
	l.mu.Unlock()
	pause()
	s <- struct{}{}
}

// close wakes all and lets none sleep again.
func (l *lot) close() {
	l.mu.Lock()
	l.closed = true
	seats := l.seats
	l.seats = nil
	l.idle.Store(0)
	l.mu.Unlock()
	for _, s := range seats {
		pause()
		s <- struct{}{}
	}
}
