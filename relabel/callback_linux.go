// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/steal"
)

// The caller's code runs in goroutines that hold nothing of the run: no descriptor,
// no lock and no worker. So it may panic, or end its goroutine: the run is stopped
// as by its context, the root is sealed, and the same happens to the goroutine that
// called Tree. And it may block: a run that was stopped waits for it as long as for
// a call of the filesystem, and then ends without it, with all that it has opened.

// lead has what done in a goroutine of its own, and waits for it as long as ctx lets it.
func (r *run) lead(ctx context.Context, what func(ctx context.Context) error) (Report, error) {
	begin := time.Now()
	r.off, r.stallTold = make(chan struct{}), make(chan struct{}, 1)
	ctx, r.stop = context.WithCancelCause(ctx)
	done := make(chan error, 1)
	go func() {
		var err error
		returned := false
		defer func() {
			if !returned {
				err = r.blow("", recover())
			}
			if r.o.inner.ended != nil {
				r.o.inner.ended()
			}
			done <- err
		}()
		if r.o.Progress != nil {
			state := r.state
			r.o.Progress.state.Store(&state)
		}
		err = what(ctx)
		returned = true
	}()
	err := r.attend(ctx, done)
	r.mu.Lock()
	r.over = true
	blown := r.blown
	r.mu.Unlock()
	r.stop(nil)
	if blown != nil && !errors.As(err, new(*PanicError)) {
		err = blown
	}
	return r.soFar(begin), err
}

// call runs the caller's code named so, of path, and waits for it. It says no if it
// was not begun or has not ended, because the run was stopped.
func (r *run) call(name, path string, f func()) bool {
	c := &HungCall{theCallers + name, path}
	if !r.callBegins(c) {
		return false
	}
	done := make(chan struct{})
	go func() {
		returned := false
		defer func() {
			if !returned {
				_ = r.blow(name, recover()) // it is told when the run ends
			}
			r.callEnds(c)
			close(done)
		}()
		f()
		returned = true
	}()
	select {
	case <-done:
		return true
	case <-r.off:
		return false
	}
}

// callBegins notes that c is under way, and says no if it may not begin any more.
func (r *run) callBegins(c *HungCall) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.isOff() {
		return false
	}
	r.calling = append(r.calling, c)
	return true
}

func (r *run) callEnds(c *HungCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calling = slices.DeleteFunc(r.calling, func(o *HungCall) bool { return o == c })
}

// throttler calls Throttle for one worker, always in the same goroutine: it is called
// for every few entries, and costs no memory.
type throttler struct {
	*run
	c     *HungCall
	work  chan int
	done  chan struct{}
	ended chan struct{} // closed with the goroutine
}

func (r *run) throttler(ctx context.Context) *throttler {
	t := &throttler{
		run: r, c: &HungCall{theCallers + "Throttle", ""},
		work: make(chan int), done: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go func() {
		returned := false
		defer func() {
			if !returned {
				_ = r.blow("Throttle", recover()) // it is told when the run ends
				r.callEnds(t.c)
			}
			close(t.ended)
		}()
		for entries := range t.work {
			if err := r.o.Throttle(ctx, entries); err != nil {
				r.stop(err) // of no effect where ctx has ended
			}
			r.callEnds(t.c)
			t.done <- struct{}{}
		}
		returned = true
	}()
	return t
}

// ask is call for Throttle.
func (t *throttler) ask(entries int) {
	if !t.callBegins(t.c) {
		return
	}
	select {
	case t.work <- entries:
	case <-t.ended:
		t.callEnds(t.c)
		return
	}
	select {
	case <-t.done:
	case <-t.ended:
	case <-t.off:
	}
}

// end lets the goroutine end.
func (t *throttler) end() { close(t.work) }

// serially is call for code that is called one at a time.
func (r *run) serially(name, path string, f func()) {
	r.events.Lock()
	defer r.events.Unlock()
	r.call(name, path, f)
}

// callOff lets the run wait for the caller's code no longer.
func (r *run) callOff() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isOff() {
		close(r.off)
	}
}

func (r *run) isOff() bool {
	select {
	case <-r.off:
		return true
	default:
		return false
	}
}

// blow stops the run for a panic with that value; nil stands for runtime.Goexit.
func (r *run) blow(callback string, value any) error {
	p := &PanicError{Callback: callback, Value: value, Stack: debug.Stack()}
	r.mu.Lock()
	if r.blown == nil {
		r.blown = p
	}
	p = r.blown
	r.mu.Unlock()
	if r.stop != nil {
		r.stop(p)
	}
	return p
}

// broken is the first panic, if there was one.
func (r *run) broken() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blown == nil {
		return nil
	}
	return r.blown
}

// blew makes a panic of the walk's own one of the run.
func (r *run) blew(err error) error {
	var p *steal.Panic
	if !errors.As(err, &p) {
		return err
	}
	blown := r.blow("", p.Value)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blown.Stack = p.Stack
	return blown
}

// underWayHere lists the caller's code that has not returned.
func (r *run) underWayHere() (calls []HungCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calling {
		calls = append(calls, *c)
	}
	return calls
}
