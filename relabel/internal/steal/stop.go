// SPDX-License-Identifier: Apache-2.0

package steal

import (
	"context"
	"runtime/debug"
)

// halt stops the pool; why notes the reason.
func (p *pool[T]) halt(why func()) {
	p.mu.Lock()
	why()
	p.stopped.Store(true)
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

// wait returns when all workers are gone.
func (p *pool[T]) wait() {
	for n := int32(0); n < p.alive.Load(); n++ {
		<-p.gone
	}
}

// verdict is Run's error.
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
