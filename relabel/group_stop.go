// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
)

// ErrStopped is what ended the work of a Group that was stopped, and what a caller
// of a Group gets that was shut down.
var ErrStopped = errors.New("the relabel was stopped")

// Stop cancels all work of the Group on the volume at root, whatever the label,
// waits for it to end, and forgets its results; callers who wait for it get
// ErrStopped. Then the Group holds nothing open there, and the volume can be
// unmounted. A caller who arrives after Stop begins anew.
//
// The volume is the one that callers named so and, if ctx lets it be looked at, the
// one that lies there now. When ctx ends first the error is a *HungError where the
// filesystem does not answer; what was cancelled stays so.
func (g *Group) Stop(ctx context.Context, root string) error {
	path, err := absolute(root)
	if err != nil {
		return err
	}
	ended := g.halt(func(at string) bool { return at == path }, volumeID{})
	if ctx.Err() != nil { // before the filesystem is asked, which may well answer
		return ending(ctx)
	}
	if a, err := g.register(""); err == nil {
		l, err := g.look(ctx, a, place{root: path})
		g.mu.Lock()
		delete(g.arrivals, a)
		g.mu.Unlock()
		if err == nil {
			ended = append(ended, g.halt(func(string) bool { return false }, l.id)...)
		}
	}
	if err := wait(ctx, ended); err != nil {
		return err
	}
	return g.waitLooks(ctx, func(at string) bool { return at == path })
}

// Shutdown is Stop for all volumes, and for good: later calls of Tree get
// ErrStopped.
func (g *Group) Shutdown(ctx context.Context) error {
	g.mu.Lock()
	g.shut = true
	g.mu.Unlock()
	all := func(string) bool { return true }
	if err := wait(ctx, g.halt(all, volumeID{})); err != nil {
		return err
	}
	return g.waitLooks(ctx, all)
}

// waitLooks waits for those who look at what is named so: they have it open.
func (g *Group) waitLooks(ctx context.Context, named func(root string) bool) error {
	g.mu.Lock()
	under := make(map[place]*look)
	for p, l := range g.looks {
		if named(p.root) {
			under[p] = l
		}
	}
	g.mu.Unlock()
	for p, l := range under {
		select {
		case <-l.done:
		case <-ctx.Done():
			return &HungError{Calls: []HungCall{{"openat", p.root}}, Cause: ending(ctx)}
		}
	}
	return nil
}

// arrival is a caller who is not counted in a work yet.
type arrival struct {
	root    string
	stopped chan struct{}
}

func (a *arrival) isStopped() bool {
	select {
	case <-a.stopped:
		return true
	default:
		return false
	}
}

func (g *Group) register(root string) (*arrival, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return nil, ErrStopped
	}
	a := &arrival{root, make(chan struct{})}
	if g.arrivals == nil {
		g.arrivals = make(map[*arrival]bool)
	}
	g.arrivals[a] = true
	return a, nil
}

// halt stops what was named so and what is on the volume id, and returns what is to
// be waited for.
func (g *Group) halt(named func(root string) bool, id volumeID) (ended []*work) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for a := range g.arrivals {
		if named(a.root) && !a.isStopped() {
			close(a.stopped)
		}
	}
	for _, v := range append([]*volume(nil), g.volumes...) {
		is := v.id == id
		for _, w := range append(append([]*work{v.kept}, v.queue...), v.behind...) {
			is = is || w != nil && named(w.root)
		}
		if is {
			ended = append(ended, g.haltVolume(v)...)
		}
	}
	return ended
}

// haltVolume is halt for one volume. mu is held.
func (g *Group) haltVolume(v *volume) []*work {
	ended := append([]*work(nil), v.behind...)
	for i, w := range v.queue {
		w.stopped = true
		if i == 0 {
			w.stop(ErrStopped)
			ended = append(ended, w)
			continue
		}
		w.report, w.err = Report{Root: w.root, Label: w.label}, ErrStopped
		close(w.done)
		close(w.released)
	}
	v.queue = v.queue[:min(1, len(v.queue))]
	v.kept = nil
	g.drop(v)
	return ended
}

// wait waits until the works hold nothing any more.
func wait(ctx context.Context, ended []*work) error {
	for _, w := range ended {
		select {
		case <-w.released:
			continue
		case <-ctx.Done():
		}
		select {
		case <-w.released:
		case <-w.done:
			var hung *HungError
			if errors.As(w.err, &hung) {
				return &HungError{Calls: hung.Calls, Cause: ending(ctx)}
			}
			return ending(ctx)
		default:
			return ending(ctx)
		}
	}
	return nil
}
