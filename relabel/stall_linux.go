// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/steal"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// spares bounds the workers that one walk may add in place of others. On a dead
// server each of them ends up waiting too.
const spares = 16

// task is what one goroutine of the run does outside the pool: the run itself or,
// while that waits, what is mounted beneath the root.
type task struct {
	*watch.Activity
	crew  atomic.Pointer[crew]         // of the walk under way, if there is one
	share atomic.Pointer[budget.Share] // of the process's workers, if it has one
}

// crew are the workers of a walk. A slot is empty until its worker begins.
type crew struct {
	workers []atomic.Pointer[worker]
	share   *budget.Share
	asked   int // how many attend asked to leave, because others wait
}

// all are the workers that have begun.
func (c *crew) all(yield func(*worker) bool) {
	if c == nil {
		return
	}
	for i := range c.workers {
		if w := c.workers[i].Load(); w != nil && !yield(w) {
			return
		}
	}
}

func (c *crew) watched(yield func(*watch.Worker) bool) {
	for w := range c.all {
		if !yield(&w.watched) {
			return
		}
	}
}

// task adds a task to the run.
func (r *run) task() *task {
	t := &task{Activity: watch.New()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks = append(r.tasks, t)
	return t
}

// attend waits for the run, which is in a goroutine of its own, and has workers that
// are held up replaced. If the run does not end after ctx, which is its own, it is
// abandoned: it ends by itself when the call returns.
//
//	stopped ── one look ──▶ the caller's code is waited for no longer,
//	                        and a second reading is given up ── one look ──▶ abandoned
func (r *run) attend(ctx context.Context, done <-chan error) error {
	tick := time.NewTicker(watch.Every)
	defer tick.Stop()
	stop, looks := ctx.Done(), 0 // since it was stopped
	var revoked <-chan struct{}
	var late []HungCall // before revoke, which makes calls in the name of the run
	var err error
	for {
		select {
		case err = <-done:
			done = nil
		case <-r.stallTold:
			r.telling = false
		case <-stop:
			stop = nil
			tick.Reset(watch.Every)
		case <-revoked: // before Tree returns, for its caller goes by the root's label
			revoked = nil
		case <-tick.C:
			if done != nil {
				r.watchOnce()
			}
			if stop == nil {
				looks++
			}
			switch looks {
			case 1:
				r.callOff()
				late = r.underWay()
				revoked = r.revoke()
			case 2:
				select {
				case err = <-done:
					done = nil
				default:
					for _, t := range r.everyTask() {
						t.share.Load().Waits(true)
					}
					if calls := r.underWay(); len(calls) > 0 {
						late = calls
					}
					return &HungError{Calls: late, Cause: context.Cause(ctx)}
				}
			}
		}
		if done != nil || r.telling && !r.isOff() {
			continue
		}
		if calls := r.underWayHere(); len(calls) > 0 {
			return &HungError{Calls: calls, Cause: context.Cause(ctx)}
		}
		return err
	}
}

// revoke gives up a second reading. It waits for nothing: to seal the root may hang too.
func (r *run) revoke() <-chan struct{} {
	revoke := r.second.Load()
	if revoke == nil {
		return nil
	}
	revoked := make(chan struct{})
	go func() {
		(*revoke)()
		close(revoked)
	}()
	return revoked
}

// watchOnce relieves workers, and tells of a run that stands still.
func (r *run) watchOnce() {
	still, waiting := true, false
	for _, t := range r.everyTask() {
		c := t.crew.Load()
		moves, hung := t.Look(c.watched)
		still, waiting = still && !moves, waiting || hung > 0
		working := t.share.Load().Held(hung)
		switch {
		case c == nil:
		case working > 0:
			c.yield(working - 1)
			r.yield(c.share)
		default:
			c.asked = 0
		}
	}
	if stalled := still && waiting; stalled != r.stalled {
		if r.stalled = stalled; stalled && r.trace.Stall != nil {
			r.tellStall(r.underWay())
		}
	}
}

// tellStall waits for nothing: OnStall may block, or another callback that comes first.
func (r *run) tellStall(calls []HungCall) {
	if r.telling {
		return
	}
	r.telling = true
	go func() {
		r.serially("Trace.Stall", "", func() { r.trace.Stall(calls) })
		r.stallTold <- struct{}{}
	}()
}

func (r *run) everyTask() []*task {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks
}

// relieve adds a worker, if the process may have one more.
func (c *crew) relieve(p *steal.Worker[item]) bool {
	if c.share.Workers(1) == 0 {
		return false
	}
	if p.Relieve() {
		return true
	}
	c.share.Put()
	return false
}

// yield asks surplus workers to leave, less those that were asked before.
func (c *crew) yield(surplus int) {
	if p := c.handle(); p != nil && surplus > c.asked {
		p.Shed(surplus - c.asked)
		c.asked = surplus
	}
}

// yield gives descriptors to runs that wait: fewer directories stay open for later.
func (r *run) yield(s *budget.Share) {
	open := max(2, int(r.cache.open.Load()))
	r.cache.resize(min(open, r.cache.most()))
	s.Keep(budget.RunFiles+2*open, budget.PerWorker)
}

// underWay lists the calls that have not returned.
func (r *run) underWay() []HungCall {
	calls := r.underWayHere()
	for _, t := range r.everyTask() {
		for _, c := range t.UnderWay(t.crew.Load().watched) {
			calls = append(calls, HungCall(c))
		}
	}
	return calls
}

// position is where a worker is. The worker alone writes it, and anybody may read it:
// whoever asks how far a run is, or where it hangs.
type position struct {
	in     atomic.Pointer[dir] // nil while it has nothing to do
	name   atomic.Pointer[byte]
	step   atomic.Uint32 // of a visit
	doing  atomic.Uint32 // an xattrio.SyscallKind
	items  atomic.Uint64 // worked on so far
	paused atomic.Bool   // by the caller: see pace
	pauses atomic.Uint32 // that have ended

	watched watch.Worker
}

// at tells where the worker is.
func (p *position) at(d *dir, name *byte) {
	p.in.Store(d)
	p.name.Store(name)
}

// now says which call comes next, if it is another than the last.
func (p *position) now(k xattrio.SyscallKind) {
	if p.doing.Load() != uint32(k) {
		p.doing.Store(uint32(k))
	}
}

// watch lets the worker be looked at.
func (w *worker) watch(c *crew) {
	w.watched.Busy = func() bool { return w.in.Load() != nil && !w.paused.Load() } // else it waits for work
	w.watched.Place = w.place
	w.watched.Call = w.hungAt
	w.watched.Replace = func() bool { return c.relieve(w.pool) }
}

// place is where a worker is, to be compared with where it is later.
func (w *worker) place() any {
	next := int32(0)
	if c := w.chunk.Load(); c != nil {
		next = c.row.Next.Load()
	}
	return [6]any{w.items.Load(), w.name.Load(), w.doing.Load(), w.step.Load(), next, w.pauses.Load()}
}

func (w *worker) hungAt() watch.Call {
	call, name := xattrio.SyscallKind(w.doing.Load()), w.name.Load()
	switch call {
	case xattrio.Row:
		call, name = w.sweepsAt()
	case xattrio.Visit:
		call = w.visitsAt()
	}
	path := w.m.Path
	if d := w.in.Load(); d != nil {
		path = d.path(xattrio.Target{Name: name}.String())
	}
	return watch.Call{Call: call.String(), Path: path}
}

// visitsAt is the call that a visit has under way.
func (w *worker) visitsAt() xattrio.SyscallKind {
	switch sys.Step(w.step.Load()) {
	case sys.StepClose:
		return xattrio.Close
	case sys.StepRead:
		return xattrio.Fgetxattr
	case sys.StepWrite:
		return xattrio.Fsetxattr
	case sys.StepList:
		return xattrio.Getdents64
	}
	return xattrio.Openat
}

// inherit makes work of what is left of the rows of workers that are held up.
func (w *worker) inherit(c *crew) {
	for other := range c.all {
		if other == w || !other.watched.HeldUp.Load() {
			continue
		}
		k := other.chunk.Load()
		if k == nil {
			continue
		}
		next := k.row.Next.Load()
		if next < 0 || !k.row.Next.CompareAndSwap(next, taking) {
			continue
		}
		k.left.Store(next)
		if rest := k.buf[k.row.At[next]:]; len(rest) > 0 {
			w.cache.expect(k.dir)
			w.pool.Push(item{kind: labelRecords, dir: k.dir, records: rest})
		}
		k.row.Next.Store(handed)
	}
}
