// SPDX-License-Identifier: Apache-2.0

package steal

import (
	"context"
	"runtime/debug"
	"time"
)

// halt stops the pool; why notes the reason.
func (p *pool[T]) halt(why func()) {
	p.mu.Lock()
	why()
	if !p.stopped.Swap(true) {
		close(p.stop)
	}
	p.mu.Unlock()
	pause(halted)
	p.lot.close()
}

// hook calls f once ctx is cancelled, in a goroutine of its own. unhook sees to
// it that f is not called later, nor still at work: Run leaves no goroutine.
func hook(ctx context.Context, f func()) (unhook func()) {
	called := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(called)
		f()
	})
	return func() {
		if !stop() {
			<-called
		}
	}
}

// guard calls f and turns a panic in it into a stop. runtime.Goexit does the
// same, but cannot be held up: what must follow then has to be deferred.
func (p *pool[T]) guard(f func()) {
	returned := false
	defer func() {
		if returned {
			return
		}
		value := recover()
		if value == nil {
			value = errGoexit
		}
		err := &Panic{Value: value, Stack: debug.Stack()}
		p.halt(func() { p.panicked = first(p.panicked, err) })
	}()
	f()
	returned = true
}

// wait returns when all workers are gone, or grace after a stop with those that
// are not.
func (p *pool[T]) wait(grace time.Duration) (stuck []int) {
	gone := make([]bool, len(p.workers))
	stop := p.stop
	var late <-chan time.Time
	for n := 0; n < int(p.alive.Load()); {
		select {
		case id := <-p.gone:
			gone[id] = true
			n++
		case <-stop:
			stop = nil // closed: once is enough
			if grace > 0 {
				timer := time.NewTimer(grace)
				defer timer.Stop()
				late = timer.C
			}
		case <-late:
			for len(p.gone) > 0 { // select may prefer the timer to them
				gone[<-p.gone] = true
			}
			for id := range p.working() {
				if !gone[id] {
					stuck = append(stuck, id)
				}
			}
			return stuck
		}
	}
	return nil
}

// verdict is Run's error, stuck workers aside.
func (p *pool[T]) verdict(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.panicked != nil:
		return p.panicked
	case p.failed != nil:
		return p.failed
	case p.cancelled && (p.pending.Load() != 0 || p.told.Load()):
		return context.Cause(ctx)
	}
	return nil
}

func first(old, err error) error {
	if old != nil {
		return old
	}
	return err
}
