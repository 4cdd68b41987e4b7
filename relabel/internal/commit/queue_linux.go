// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// queue has the callers of one process wait in memory, in the order in which they came:
// only the first of a line looks whether another process has the lock. Who leaves wakes
// the next one, and nobody else.
type queue struct {
	mu    sync.Mutex
	lines map[volume]*line // of volumes in use
}

// volume is a volume's root.
type volume struct{ dev, ino uint64 }

// line is one volume's. queue.mu guards it.
type line struct {
	holder  string          // who has the lock; "" while that is not known
	does    string          // what the one whose turn it is does
	waiting []chan struct{} // closed when it is the caller's turn
}

// process is the queue of this process.
var process queue

// untold is how long a caller waits before it says so: most runs end within that time.
const untold = time.Millisecond

// enter waits for the caller's turn at the volume id, and calls tell if that takes a
// while. It returns what the one did for whom the caller had to wait. After nil the caller
// has to leave.
func (q *queue) enter(ctx context.Context, id volume, does string, tell func(holder string)) (did string, err error) {
	mine := q.join(id, does)
	if mine == nil {
		return "", nil
	}
	turn := false
	defer func() {
		if !turn { // also if tell panics
			q.quit(id, mine)
		}
	}()
	wait := time.NewTimer(untold)
	defer wait.Stop()
	for {
		select {
		case <-mine:
			turn = true
			return q.takes(id, does), nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-wait.C:
			tell(q.holder(id))
		}
	}
}

// join puts the caller at the end of the line; nil: it is alone there.
func (q *queue) join(id volume, does string) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[id]
	if l == nil {
		if q.lines == nil {
			q.lines = make(map[volume]*line)
		}
		q.lines[id] = &line{does: does}
		return nil
	}
	mine := make(chan struct{})
	l.waiting = append(l.waiting, mine)
	return mine
}

// takes notes what the caller does whose turn has come, and returns what the one before did.
func (q *queue) takes(id volume, does string) (did string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[id]
	did, l.does = l.does, does
	return did
}

// quit takes a caller out of the line who waits no longer. Its turn may have come since.
func (q *queue) quit(id volume, mine chan struct{}) {
	q.mu.Lock()
	l := q.lines[id]
	i := slices.Index(l.waiting, mine)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	if i < 0 {
		l.does = "" // the next may have come after that was done
	}
	q.mu.Unlock()
	if i < 0 {
		q.leave(id)
	}
}

// leave lets the next caller have its turn.
func (q *queue) leave(id volume) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[id]
	l.holder = ""
	if len(l.waiting) == 0 {
		delete(q.lines, id)
		return
	}
	close(l.waiting[0])
	l.waiting = slices.Delete(l.waiting, 0, 1)
}

// holds notes who has the lock, for those who wait.
func (q *queue) holds(id volume, holder string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lines[id].holder = holder
}

func (q *queue) holder(id volume) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lines[id].holder
}
