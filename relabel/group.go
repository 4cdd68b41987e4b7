// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// # Who owns what
//
// Each run of Tree has a goroutine, which alone writes the report and the error
// of its work until it closes done; from then on all may read them. Each look
// at a root has a goroutine too, and its answer is handed over in the same way.
// seen is atomic. All else is guarded by Group.mu, which is never held while
// the filesystem is asked or the caller's code runs: either may take for ever.
// There is no other goroutine: Linger and Keep are timers.
//
// # Which orderings hold, and what breaks otherwise
//
// 1. A caller finds a work and is counted in it under one hold of mu, and a
// work that nobody waits for is given up under one hold too. With a gap:
//
//	caller                     timer
//	finds the work
//	                           nobody is counted: stops it
//	is counted, waits
//
// and the caller would be told that somebody cancelled it.
//
// 2. A timer that fires may come late to mu, after a caller has joined and left
// again. It then belongs to an absence that is over; idle tells one from the
// next. Else the second absence would end with the first one's time.
//
// 3. The end of a run, its leaving the queue and the next one's beginning are
// one hold of mu. Only the first of a queue runs, so a volume has one run.
//
// 4. The root is looked at after its caller arrived. Who arrives during a look
// waits for the next one, which all who wait share. Else who was called after
// the path was given to another directory would join the work on the old one.
// One look at a time and path, because each that hangs costs a thread, and
// callers on dead storage come back every two minutes.
//
// 5. A kept success is held against the root's label before the caller joins,
// without mu. What was kept meanwhile ended after the caller arrived, so it is
// an answer without being asked about: only the doubted work is dropped.
//
// # What was rejected
//
// Options for each call: who joins gets what the first one asked for, or every
// option becomes part of what identifies the work. Two groups serve two kinds
// of caller, and the volume's lock keeps their runs apart.
//
// Holding the root open, so that its inode cannot be another's by the time a
// result is asked for: it would also keep the volume from being unmounted.
//
// Comparing the root's times before a success is handed out: on a volume that
// others write to, each retry would begin anew, for ever.
//
// Giving up the linger as soon as another label waits: two callers that take
// turns would stop each other's work for ever.
//
// Catching panics: the walk's own goroutines would not be covered.

// asLong is how long CRI-O keeps the result of a request that timed out (its
// issue 4221, done in 4394), and also the kubelet's own limit for a request.
const asLong = 2 * time.Minute

// Group relabels each volume once at a time, however many ask for it. A caller
// whose context ends leaves at once; the work goes on, and the caller who asks
// again for the same volume and label joins it or gets its result. Another
// label for the same volume waits its turn.
//
// A volume is what a root is by device and inode: two paths to one directory
// are one volume, and a directory made anew under an old path is another one.
// What is mounted beneath it is looked for under the path of the first caller.
//
// The zero value is ready for use. A Group must not be copied, nor its fields
// changed, after the first call.
type Group struct {
	// Options are those of each run. Callbacks are serial for one run, but
	// several volumes may be at work.
	Options Options
	// Linger is how long work goes on that nobody waits for, or that keeps
	// its place in the queue; it is then cancelled. 0 is two minutes, below 0
	// it goes on to its end.
	Linger time.Duration
	// Keep is how long a result is there for callers who come back: a success
	// as long as the root bears the label and no run to another label has
	// begun; a failure for one caller, and only if nobody was told when it
	// happened. 0 is two minutes, below 0 nothing is kept.
	Keep time.Duration

	mu      sync.Mutex
	volumes []*volume
	looks   map[place]*look

	calls calls // for tests; what is nil is the real one
}

// calls are what a Group asks of the rest of the package and of the system.
type calls struct {
	tree     func(ctx context.Context, root, label string, o Options) (Report, error)
	lstat    func(root string) (fs.FileInfo, error)
	labelled func(root, label string, depth Depth) (bool, error)
}

func (c calls) orReal() calls {
	if c.tree == nil {
		c.tree = Tree
	}
	if c.lstat == nil {
		c.lstat = os.Lstat // Tree follows no link either
	}
	if c.labelled == nil {
		c.labelled = Labelled
	}
	return c
}

// volume is there as long as there is work on it or a result of it.
type volume struct {
	info  fs.FileInfo
	queue []*work // the first one runs
	kept  *work   // the last that ended; nil while one runs
}

// work is one run, in the queue, under way or ended.
type work struct {
	volume *volume
	root   string // as the first caller named it
	label  string // in canonical form
	seen   atomic.Int64

	done   chan struct{}
	report Report
	err    error

	since   time.Time // when it began or, before that, was asked for
	stop    context.CancelFunc
	stopped bool // nobody joins any more
	callers int
	idle    int    // how often it was left by all
	waits   string // what held it up when it had seen as much as heldUpAt
	heldUp  int64
}

// Tree is Tree with the Group's Options, shared with all who ask for the same.
// When ctx ends first the error is a *Pending, and the work goes on; or a *Hung
// if the filesystem did not even tell what root is. The Report beside them says
// nothing. Both errors are found by errors.Is to be what ended ctx.
func (g *Group) Tree(ctx context.Context, root, label string) (Report, error) {
	none := Report{Root: root, Label: label}
	want, err := Canonical(label)
	if err != nil {
		return none, err
	}
	none.Label = want
	if ctx.Err() != nil {
		return none, ending(ctx)
	}
	l, err := g.look(ctx, place{root, want})
	if err != nil {
		return none, err
	}
	w := g.join(l, root, want)
	select {
	case <-w.done:
	case <-ctx.Done():
		if p := g.leave(w); p != nil {
			p.Root, p.Cause = root, ending(ctx)
			return none, p
		}
	}
	report := w.report
	report.Root, report.Notes = root, slices.Clone(report.Notes)
	return report, w.err
}

// Progress tells of all work in the queue and under way.
func (g *Group) Progress() []Progress {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Progress
	for _, v := range g.volumes {
		for _, w := range v.queue {
			all = append(all, w.progress())
		}
	}
	return all
}

// find needs no index: there are as many volumes as are at work, and those of
// the last two minutes.
func (g *Group) find(info fs.FileInfo) *volume {
	for _, v := range g.volumes {
		if os.SameFile(v.info, info) {
			return v
		}
	}
	return nil
}

// join finds or begins the work that the caller waits for, and counts the
// caller. The work may have ended.
func (g *Group) join(l *look, root, label string) *work {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.find(l.info)
	if v == nil {
		v = &volume{info: l.info}
		g.volumes = append(g.volumes, v)
	}
	if w := v.kept; w != nil && w.label == label && w != l.doubt {
		if w.err != nil {
			g.forget(w)
		}
		return w
	}
	for _, w := range v.queue {
		if w.label == label && !w.stopped {
			w.callers++
			return w
		}
	}
	w := &work{volume: v, root: root, label: label, done: make(chan struct{}), since: time.Now(), callers: 1}
	if v.queue = append(v.queue, w); len(v.queue) == 1 {
		g.begin(w)
	}
	return w
}

// leave is for a caller whose time is up. It returns nil if the work has ended.
func (g *Group) leave(w *work) *Pending {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.done:
		return nil
	default:
	}
	p := &Pending{Progress: w.progress(), Within: max(0, or(g.Linger))}
	p.Callers--
	if w.callers--; w.callers == 0 && g.Linger >= 0 {
		w.idle++
		absence := w.idle
		time.AfterFunc(p.Within, func() { g.giveUp(w, absence) })
	}
	return p
}

// giveUp ends work that nobody has waited for since the absence began.
func (g *Group) giveUp(w *work, absence int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.callers > 0 || w.idle != absence {
		return
	}
	switch i := slices.Index(w.volume.queue, w); i {
	case -1: // it has ended
	case 0:
		w.stopped = true
		w.stop()
	default:
		w.volume.queue = slices.Delete(w.volume.queue, i, i+1)
	}
}

// begin runs the first of a queue. mu is held.
func (g *Group) begin(w *work) {
	w.volume.kept = nil // the root is about to change
	w.since = time.Now()
	// Of no caller: it is to outlive them all.
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go g.run(ctx, w)
}

func (g *Group) run(ctx context.Context, w *work) {
	defer w.stop()
	w.report, w.err = g.calls.orReal().tree(ctx, w.root, w.label, g.options(w))

	g.mu.Lock()
	defer g.mu.Unlock()
	close(w.done)
	v := w.volume
	v.queue = slices.Delete(v.queue, 0, 1)
	if len(v.queue) > 0 {
		g.begin(v.queue[0])
		return
	}
	v.kept = w
	if told := w.err != nil && (w.callers > 0 || w.stopped); told {
		g.forget(w)
		return
	}
	time.AfterFunc(or(g.Keep), func() { // below 0: at once
		g.mu.Lock()
		defer g.mu.Unlock()
		g.forget(w)
	})
}

// options are the Group's, with what holds a run up noted for Progress.
func (g *Group) options(w *work) Options {
	o := g.Options
	o.Seen = &w.seen
	note := func(format string, args ...any) {
		g.mu.Lock()
		defer g.mu.Unlock()
		w.waits, w.heldUp = fmt.Sprintf(format, args...), w.seen.Load()
	}
	o.OnWait = func(holder string) {
		note("the volume's lock, held by %s", holder)
		if g.Options.OnWait != nil {
			g.Options.OnWait(holder)
		}
	}
	o.OnStall = func(calls []HungCall) {
		if len(calls) > 0 {
			note("%d calls of the filesystem, one of them %s", len(calls), calls[0])
		}
		if g.Options.OnStall != nil {
			g.Options.OnStall(calls)
		}
	}
	return o
}

// forget drops the result of w, and its volume with it if there is no more. mu
// is held.
func (g *Group) forget(w *work) {
	if v := w.volume; v.kept == w {
		v.kept = nil
		g.volumes = slices.DeleteFunc(g.volumes, func(o *volume) bool { return o == v && len(v.queue) == 0 })
	}
}

func (w *work) progress() Progress {
	p := Progress{
		Root: w.root, Label: w.label, Entries: w.seen.Load(),
		Elapsed: time.Since(w.since), Callers: w.callers,
	}
	if first := w.volume.queue[0]; first != w {
		p.Waits = "the relabel to " + first.label
	} else if w.heldUp == p.Entries {
		p.Waits = w.waits
	}
	return p
}
