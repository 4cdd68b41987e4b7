// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// place is what a caller asks for, before it is known where that is.
type place[K comparable] struct {
	root string
	key  K
}

// look is one look at a root.
type look[I, K comparable, D any] struct {
	done chan struct{}
	call watch.Activity // in none while it waits for its share
	id   I
	err  error
	next *look[I, K, D] // to begin when this one has ended
}

const mostLookers = 32

// lookers is the budget of those who look, apart from that of the runs: however
// many of these are at work, a caller who comes back is answered. A look that hangs
// keeps no other waiting.
var lookers = budget.New(mostLookers, func() int { return 1 << 20 })

// look asks which place p is, and waits no longer than ctx.
func (g *Group[I, K, D]) look(ctx context.Context, a *arrival, p place[K]) (*look[I, K, D], error) {
	l := g.nextLook(p)
	select {
	case <-l.done:
		return l, l.err
	case <-a.stopped:
		return nil, a.why
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if closed(l.done) {
		return l, l.err
	}
	return nil, g.unanswered(ctx, g.looks[p]) // it, or the one before it
}

// unanswered is the error for a caller who waits for l no longer.
func (g *Group[I, K, D]) unanswered(ctx context.Context, l *look[I, K, D]) error {
	if call := l.call.Call(); call != (watch.Call{}) {
		return g.Hung([]watch.Call{call}, ending(ctx))
	}
	return ending(ctx) // others hang
}

// nextLook is the first look that begins from now on.
func (g *Group[I, K, D]) nextLook(p place[K]) *look[I, K, D] {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.looks[p]
	if now != nil && now.next != nil {
		return now.next
	}
	l := &look[I, K, D]{done: make(chan struct{})}
	if now != nil {
		now.next = l
		return l
	}
	if g.looks == nil {
		g.looks = make(map[place[K]]*look[I, K, D])
	}
	g.looks[p] = l
	go func() {
		for l := l; l != nil; {
			l = g.see(l, p)
		}
	}()
	return l
}

// see looks, and returns the look that is next.
func (g *Group[I, K, D]) see(l *look[I, K, D], p place[K]) *look[I, K, D] {
	share, err := lookers.Enter(context.Background(), 0)
	if err != nil {
		panic(err) // that context does not end
	}
	defer share.Close()
	// Nothing else finds out that a look hangs: it is a call or two, and no run.
	defer time.AfterFunc(watch.Limit, func() { share.Held(1) }).Stop()
	l.id, l.err = g.At(&l.call, p.root)
	g.mu.Lock()
	defer g.mu.Unlock()
	close(l.done)
	if g.looks[p] = l.next; l.next == nil {
		delete(g.looks, p)
	}
	return l.next
}
