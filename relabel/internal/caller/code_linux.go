// SPDX-License-Identifier: Apache-2.0

package caller

import "errors"

// errBroken is why a run ends whose caller's code panicked.
var errBroken = errors.New("the caller's code panicked")

// call is one of the caller's functions, to be called.
type call struct {
	f    func()
	done chan struct{} // closed when f has returned, or is not to be called any more
}

// Call has f, which is the caller's code, called in the goroutine that called Lead, and
// waits for it. So calls come one at a time, and a panic goes on in the caller. Once the
// run is left behind, or one of them panicked, nothing is called any more.
func (r *Run) Call(f func()) {
	c := call{f, make(chan struct{})}
	select {
	case r.calls <- c:
		<-c.done
	case <-r.left:
	}
}

// make calls c.
func (r *Run) make(c call) {
	defer close(c.done)
	if r.Broken() == nil {
		c.f()
	}
}

// Break ends the run for a panic of the caller's code.
func (r *Run) Break(why error) {
	r.broken.CompareAndSwap(nil, &why)
	r.Stop(why)
}

// Broken returns why the run was ended by Break; nil if it was not.
func (r *Run) Broken() error {
	if why := r.broken.Load(); why != nil {
		return *why
	}
	return nil
}
