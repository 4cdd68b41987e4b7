// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/steal"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

const (
	// glance is how often the run is looked at.
	glance = 250 * time.Millisecond
	// relieveAfter glances at the same call a worker is relieved: another
	// takes what it would have done next.
	relieveAfter = 2
	// stallAfter glances without any movement the caller is told.
	stallAfter = 4
	// spares bounds the workers that one walk may add in place of others. On
	// a dead server each of them ends up waiting too.
	spares = 16
	// giveUp is how long Tree waits for a run that was stopped: a call that
	// takes longer hangs in the kernel, where nothing can end it.
	giveUp = 500 * time.Millisecond
)

// strand is what one goroutine of the run does outside the pool: the run itself
// or, while that waits, what is mounted beneath the root.
type strand struct {
	mu    sync.Mutex
	call  HungCall // under way; none between calls
	crew  *crew    // of the walk under way, if there is one
	share *share   // of the process's workers, if it has one

	stalled chan struct{} // closed when it has not moved for long
	watch   watch
}

// crew are the workers of a walk. A slot is empty until its worker begins.
type crew struct {
	workers []atomic.Pointer[worker]
	share   *share
	asked   int // how many attend asked to leave, because others wait
}

// watch is what attend remembers from glance to glance.
type watch struct {
	last any
	age  int // glances without a change
}

func (w *watch) glance(now any) {
	w.age++
	if now != w.last {
		w.last, w.age = now, 0
	}
}

// strand adds a strand to the run.
func (r *run) strand() *strand {
	s := &strand{stalled: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strands = append(r.strands, s)
	return s
}

// at says which call comes next; with an empty one, that the last has returned.
// It is for calls that are made once: workers say it in a cheaper way.
func (s *strand) at(call, path string) {
	if s == nil {
		return // Labelled, which nobody attends
	}
	s.mu.Lock()
	s.call = HungCall{call, path}
	s.mu.Unlock()
}

func (s *strand) walks(c *crew) {
	s.mu.Lock()
	s.call, s.crew = HungCall{}, c
	s.mu.Unlock()
}

// takes gives the strand a share of the process's workers.
func (s *strand) takes(share *share) {
	s.mu.Lock()
	s.share = share
	s.mu.Unlock()
}

func (s *strand) has() *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.share
}

// attend waits for the run, which is in a goroutine of its own, and looks after
// those who are held up. Nothing can end a call that hangs in the kernel: when ctx,
// which is the run's own, has ended, the run is left behind. It ends by itself when
// the call returns.
func (r *run) attend(ctx context.Context, done <-chan error) error {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	stop := ctx.Done()
	var off, late <-chan time.Time
	var err error
	for {
		select {
		case err = <-done:
			done = nil
		case <-r.stallTold:
			r.telling = false
		case <-stop:
			stop, off, late = nil, time.After(callsOff), time.After(giveUp)
		case <-off:
			r.callOff()
		case <-tick.C:
			if done != nil {
				r.glance()
			}
		case <-late:
			r.callOff()
			select {
			case err = <-done:
				done = nil
			default:
				r.retreat()
				for _, s := range r.everyStrand() {
					s.has().waits(true)
				}
				return &Hung{Calls: r.underWay(), Cause: context.Cause(ctx)}
			}
		}
		if done != nil || r.telling && !r.isOff() {
			continue
		}
		if calls := r.underWayHere(); len(calls) > 0 {
			return &Hung{Calls: calls, Cause: context.Cause(ctx)}
		}
		return err
	}
}

// retreat is for a run that hangs in its second reading: the root is sealed again
// without it, unless that hangs too.
func (r *run) retreat() {
	revoke := r.second.Load()
	if revoke == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		(*revoke)()
	}()
	select {
	case <-done:
	case <-time.After(giveUp / 4):
	}
}

// glance looks once: it relieves workers, and tells of a run that stands still.
func (r *run) glance() {
	still, waiting := true, false
	for _, s := range r.everyStrand() {
		moves, held := s.look(r)
		still, waiting = still && !moves, waiting || held
	}
	if told := still && waiting; told != r.stalled {
		if r.stalled = told; told && r.o.OnStall != nil {
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
		r.serially("OnStall", "", func() { r.o.OnStall(calls) })
		r.stallTold <- struct{}{}
	}()
}

func (r *run) everyStrand() []*strand {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.strands
}

// look says whether the strand moves, and whether it is held up by a call.
func (s *strand) look(r *run) (moves, held bool) {
	s.mu.Lock()
	call, c, share := s.call, s.crew, s.share
	s.mu.Unlock()
	if c == nil {
		s.watch.glance(call)
		held = call != HungCall{} && s.watch.age >= stallAfter
		moves = call != HungCall{} && !held
		if held {
			share.held(1)
		} else {
			share.held(0)
		}
	} else {
		var hung int
		moves, hung = c.look()
		held = hung > 0
		if working := share.held(hung); working > 0 {
			c.yield(working - 1)
			r.yield(share)
		} else {
			c.asked = 0
		}
	}
	if held && !moves {
		s.stall()
	}
	return moves, held
}

func (s *strand) stall() {
	select {
	case <-s.stalled:
	default:
		close(s.stalled)
	}
}

func (c *crew) look() (moves bool, hung int) {
	for i := range c.workers {
		w := c.workers[i].Load()
		if w == nil {
			continue
		}
		w.watch.glance(w.place())
		busy := w.in.Load() != nil && !w.paused.Load() // or it waits for work
		moves = moves || busy && w.watch.age < stallAfter
		if busy && w.watch.age >= stallAfter {
			hung++
		}
		if busy && w.watch.age >= relieveAfter && !w.relieved {
			w.heldUp.Store(true)
			w.relieved = c.relieve(w.pool)
		} else if w.watch.age == 0 {
			w.heldUp.Store(false)
			w.relieved = false
		}
	}
	return moves, hung
}

// relieve adds a worker, if the process may have one more.
func (c *crew) relieve(p *steal.Worker[item]) bool {
	if c.share.workers(1) == 0 {
		return false
	}
	if p.Relieve() {
		return true
	}
	c.share.put()
	return false
}

// yield lets workers go for whom others wait, and asks each time for those whom it
// has not asked for.
func (c *crew) yield(surplus int) {
	if p := c.handle(); p != nil && surplus > c.asked {
		p.Shed(surplus - c.asked)
		c.asked = surplus
	}
}

// yield lets go of descriptors for which others wait: fewer directories stay open
// for later.
func (r *run) yield(s *share) {
	open := max(2, int(r.cache.open.Load()))
	r.cache.resize(min(open, r.cache.most()))
	s.keep(runFiles+2*open, perWorker)
}

// underWay lists the calls that have not returned.
func (r *run) underWay() []HungCall {
	calls := r.underWayHere()
	for _, s := range r.everyStrand() {
		s.mu.Lock()
		if s.call != (HungCall{}) {
			calls = append(calls, s.call)
		}
		c := s.crew
		s.mu.Unlock()
		if c == nil {
			continue
		}
		for i := range c.workers {
			if w := c.workers[i].Load(); w != nil && w.in.Load() != nil && !w.paused.Load() {
				calls = append(calls, w.hungAt())
			}
		}
	}
	return calls
}

// place is where a worker is, to be compared with where it is later.
func (w *worker) place() any {
	next := int32(0)
	if c := w.going.Load(); c != nil {
		next = c.row.Next.Load()
	}
	return [6]any{w.items.Load(), w.name.Load(), w.doing.Load(), w.step.Load(), next, w.pauses.Load()}
}

func (w *worker) hungAt() HungCall {
	call, name := xattrio.SyscallKind(w.doing.Load()), w.name.Load()
	switch call {
	case xattrio.Row:
		call, name = w.sweepsAt()
	case xattrio.Visit:
		call = w.visitsAt()
	}
	path := w.m.path
	if d := w.in.Load(); d != nil {
		path = d.path(xattrio.Target{Name: name}.String())
	}
	return HungCall{call.String(), path}
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

// inherit makes work of what workers that are held up had before them.
func (w *worker) inherit(c *crew) {
	for i := range c.workers {
		other := c.workers[i].Load()
		if other == nil || other == w || !other.heldUp.Load() {
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
			w.pool.Push(item{dir: k.dir, rest: rest})
		}
		k.row.Next.Store(handed)
	}
}
