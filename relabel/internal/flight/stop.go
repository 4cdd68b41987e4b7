// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"slices"
)

// Stop cancels all work in the place that root is or was, waits until it holds nothing,
// and forgets its results. Callers who wait for it get why.
func (g *Group[I, K, D]) Stop(ctx context.Context, root string, why error) error {
	named := func(at string) bool { return at == root }
	works := g.halt(why, named)
	if ctx.Err() != nil { // before the root is looked at, which may well be answered
		return ending(ctx)
	}
	if a, err := g.register(""); err == nil {
		l, err := g.look(ctx, a, place[K]{root: root})
		g.mu.Lock()
		delete(g.arrivals, a)
		g.mu.Unlock()
		if err == nil {
			works = append(works, g.halt(why, func(string) bool { return false }, l.id)...)
		}
	}
	if err := wait(ctx, works); err != nil {
		return err
	}
	return g.waitLooks(ctx, named)
}

// Shutdown is Stop for all places, and for good.
func (g *Group[I, K, D]) Shutdown(ctx context.Context, why error) error {
	g.mu.Lock()
	g.shut = why
	g.mu.Unlock()
	all := func(string) bool { return true }
	if err := wait(ctx, g.halt(why, all)); err != nil {
		return err
	}
	return g.waitLooks(ctx, all)
}

// waitLooks waits for the looks at what is named so: they have it open.
func (g *Group[I, K, D]) waitLooks(ctx context.Context, named func(root string) bool) error {
	g.mu.Lock()
	var looks []*look[I, K, D]
	for p, l := range g.looks {
		if named(p.root) {
			looks = append(looks, l)
		}
	}
	g.mu.Unlock()
	for _, l := range looks {
		for l != nil {
			select {
			case <-l.done:
			case <-ctx.Done():
				return g.unanswered(ctx, l)
			}
			g.mu.Lock()
			l = l.next // which begins though its callers were stopped
			g.mu.Unlock()
		}
	}
	return nil
}

// arrival is a caller who is not counted in a work yet.
type arrival struct {
	root    string
	stopped chan struct{}
	why     error // written before stopped is closed
}

func (g *Group[I, K, D]) register(root string) (*arrival, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		return nil, g.shut
	}
	a := &arrival{root: root, stopped: make(chan struct{})}
	if g.arrivals == nil {
		g.arrivals = make(map[*arrival]bool)
	}
	g.arrivals[a] = true
	return a, nil
}

// halt cancels what is in the places that are named so or are ids, and returns what is
// to be waited for.
func (g *Group[I, K, D]) halt(why error, named func(root string) bool, ids ...I) (works []*Work[I, K, D]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for a := range g.arrivals {
		if named(a.root) && a.why == nil {
			a.why = why
			close(a.stopped)
		}
	}
	for _, w := range g.works {
		if named(w.Root) {
			ids = append(ids, w.ID)
		}
	}
	for _, w := range g.works {
		if slices.Contains(ids, w.ID) {
			works = append(works, w)
		}
	}
	for _, w := range works {
		g.cancel(w, why)
	}
	return works
}

// wait waits until the works hold nothing any more.
func wait[I, K comparable, D any](ctx context.Context, works []*Work[I, K, D]) error {
	for _, w := range works {
		select {
		case <-w.released:
			continue
		case <-ctx.Done():
		}
		switch {
		case closed(w.released):
		case closed(w.done) && w.held != nil:
			return w.held.Error(ending(ctx))
		default:
			return ending(ctx)
		}
	}
	return nil
}
