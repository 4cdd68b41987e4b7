// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"

	"github.com/fastlabel/fastlabel/relabel/internal/steal"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// Call runs the caller's code named so, of path, and waits for it. It says no if it
// was not begun or has not ended, because the run was stopped.
func (r *Run) Call(name, path string, f func()) bool {
	c := &watch.Call{Call: Code + name, Path: path}
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
func (r *Run) callBegins(c *watch.Call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.isOff() {
		return false
	}
	r.calling = append(r.calling, c)
	return true
}

func (r *Run) callEnds(c *watch.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calling = slices.DeleteFunc(r.calling, func(o *watch.Call) bool { return o == c })
}

// throttler calls Throttle for one worker, always in the same goroutine: it is called
// for every few entries, and costs no memory.
type throttler struct {
	*Run
	c     *watch.Call
	work  chan int
	done  chan struct{}
	ended chan struct{} // closed with the goroutine
}

// Throttler lets one worker call f, until it calls end.
func (r *Run) Throttler(ctx context.Context, f func(ctx context.Context, entries int) error) (ask func(entries int), end func()) {
	t := &throttler{
		Run: r, c: &watch.Call{Call: Code + "Throttle"},
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
			if err := f(ctx, entries); err != nil {
				r.Stop(err) // of no effect where ctx has ended
			}
			r.callEnds(t.c)
			t.done <- struct{}{}
		}
		returned = true
	}()
	return t.ask, t.end
}

// ask is Call for Throttle.
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

// Serially is Call for code that is called one at a time.
func (r *Run) Serially(name, path string, f func()) {
	r.serial.Lock()
	defer r.serial.Unlock()
	r.Call(name, path, f)
}

// callOff lets the run wait for the caller's code no longer.
func (r *Run) callOff() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isOff() {
		close(r.off)
	}
}

func (r *Run) isOff() bool {
	select {
	case <-r.off:
		return true
	default:
		return false
	}
}

// blow stops the run for a panic with that value; nil stands for runtime.Goexit.
func (r *Run) blow(callback string, value any) error {
	return r.blowAt(callback, value, debug.Stack())
}

func (r *Run) blowAt(callback string, value any, stack []byte) error {
	r.mu.Lock()
	if r.blown == nil {
		r.blown = r.Panicked(callback, value, stack)
	}
	first := r.blown
	r.mu.Unlock()
	r.Stop(first)
	return first
}

// Broken is the first panic, if there was one.
func (r *Run) Broken() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.blown
}

// Blew makes a panic of the walk's own one of the run.
func (r *Run) Blew(err error) error {
	var p *steal.Panic
	if !errors.As(err, &p) {
		return err
	}
	return r.blowAt("", p.Value, p.Stack)
}

// underWayHere lists the caller's code that has not returned.
func (r *Run) underWayHere() (calls []watch.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calling {
		calls = append(calls, *c)
	}
	return calls
}
