// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// place is what a caller asks for, before it is known which volume it is.
type place struct {
	root, label string
	trust       Trust
}

// look is one look at a place.
type look struct {
	done  chan struct{}
	call  string // under way; none while it waits for its share
	id    volumeID
	err   error
	next  *look // to begin when this one has ended
	doubt *work // a kept success that the root's label does not confirm
}

const mostLookers = 32

// lookers is the budget of those who look, apart from that of the runs: however
// many of these are at work, a caller who comes back is answered. A look that hangs
// keeps no other waiting.
var lookers = budget.New(mostLookers, func() int { return 1 << 20 })

// look asks the filesystem what is at p, and waits no longer than ctx.
func (g *Group) look(ctx context.Context, a *arrival, p place) (*look, error) {
	l := g.nextLook(p)
	select {
	case <-l.done:
		return l, l.err
	case <-a.stopped:
		return nil, ErrStopped
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		select {
		case <-l.done:
			return l, l.err
		default:
		}
		// It, or the one before it, is under way or waits for others.
		if call := g.looks[p].call; call != "" {
			return nil, &HungError{Calls: []HungCall{{call, p.root}}, Cause: ending(ctx)}
		}
		return nil, ending(ctx)
	}
}

// nextLook is the first look that begins from now on.
func (g *Group) nextLook(p place) *look {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.looks[p]
	if now != nil && now.next != nil {
		return now.next
	}
	l := &look{done: make(chan struct{})}
	if now != nil {
		now.next = l
		return l
	}
	if g.looks == nil {
		g.looks = make(map[place]*look)
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
func (g *Group) see(l *look, p place) *look {
	share, err := lookers.Enter(context.Background(), 0)
	if err != nil {
		panic(err) // that context does not end
	}
	defer share.Close()
	// A look is a call or two and no run, and nobody attends it.
	defer time.AfterFunc(watch.Limit, func() { share.Held(1) }).Stop()
	g.calling(l, "openat")
	ask := g.calls.orReal()
	l.id, l.err = ask.at(p.root)
	if kept := g.doubtful(l, p); kept != nil {
		if ok, err := ask.labelled(p.root, p.label); !ok || err != nil {
			l.doubt = kept
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	close(l.done)
	if g.looks[p] = l.next; l.next == nil {
		delete(g.looks, p)
	}
	return l.next
}

func (g *Group) calling(l *look, call string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.call = call
}

// doubtful finds the kept success that must be held against the root's label.
func (g *Group) doubtful(l *look, p place) *work {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.err != nil {
		return nil
	}
	v := g.find(l.id)
	if v == nil || v.kept == nil || !v.kept.is(p) || v.kept.err != nil {
		return nil
	}
	l.call = "getxattr"
	return v.kept
}
