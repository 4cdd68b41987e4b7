// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/secctx"
)

// # Who owns what
//
// Each run of Tree has a goroutine, which alone writes the report and the error
// of its work until it closes done; from then on all may read them. The work that
// never ran belongs to Stop in its place. Each look
// at a root has a goroutine too, and its answer is handed over in the same way.
// All else is guarded by Group.mu, which is never held while
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
// 4. The root is looked at after its caller arrived, and the run makes sure that
// the directory it opens is the one that was looked at: else its callers look again.
// Who arrives during a look
// waits for the next one, which all who wait share. Else who was called after
// the path was given to another directory would join the work on the old one.
// One look at a time and path, because each that hangs costs a thread, and
// callers on dead storage come back every two minutes.
//
// 5. A kept success is held against the root's label before the caller joins,
// without mu. What was kept meanwhile ended after the caller arrived, so it is
// an answer without being asked about: only the doubted work is dropped.
//
// 6. Stop marks those who have arrived and what is in the queue under one hold of
// mu. A caller is among the arrivals until it is counted in a work.
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
// asLong is how long CRI-O keeps the result of a request that timed out (its
// issue 4221, done in 4394), and also the kubelet's own limit for a request.
const asLong = 2 * time.Minute

// Group relabels each volume once at a time, however many ask for it. A caller
// whose context ends leaves at once; the work goes on, and the caller who asks
// again for the same volume and label joins it or gets its result. Another
// label for the same volume waits its turn.
//
// A volume is what a root is by mount, filesystem and inode: two paths to one
// directory in one mount are one volume; a directory made anew under an old path is
// another one, and so is another filesystem on the same device. What is mounted
// beneath it is looked for under the path of the first caller. The values of that
// caller's context are those of the run.
//
// The zero value is ready for use. A Group must not be copied, nor its fields
// changed, after the first call.
type Group struct {
	// Options are those of each run, but for Trust, which each caller names, and
	// Progress, which is one run's: Group.Work is in its place. Calls of Trace are
	// serial for one run, but several volumes may be at work.
	Options Options
	// Trace, if not nil, makes the Trace of each run in place of Options.Trace: that of
	// a log has to say which root it is of, which is here as the first caller named it.
	// It is called in a goroutine of the run, and must return.
	Trace func(root string) *Trace
	// Linger is how long work goes on that nobody waits for, or that keeps
	// its place in the queue; it is then cancelled. 0 is two minutes, below 0
	// it goes on to its end.
	Linger time.Duration
	// Keep is how long a result is there for callers who left before the work
	// ended, and come back: a success once for each of them, as long as the root
	// has the label and no run to another label has begun; a failure for one of
	// them, and only if no caller was told when it happened. They are told from
	// others by their number alone. 0 is two minutes, below 0 nothing is kept.
	Keep time.Duration

	mu       sync.Mutex
	volumes  []*volume
	looks    map[place]*look
	arrivals map[*arrival]bool
	shut     bool

	calls calls // for tests; what is nil is the real one
}

// calls are what a Group asks of the rest of the package and of the system.
type calls struct {
	tree     func(ctx context.Context, root, label string, o Options) (Report, error)
	at       func(root string) (volumeID, error)
	labelled func(root, label string) (bool, error)
}

func (c calls) orReal() calls {
	if c.tree == nil {
		c.tree = labelTree
	}
	if c.at == nil {
		c.at = volumeAt
	}
	if c.labelled == nil {
		c.labelled = func(root, label string) (bool, error) {
			s, err := Inspect(root, label, TrustRoot)
			return s.Labelled, err
		}
	}
	return c
}

// volume is there as long as there is work on it or a result of it.
type volume struct {
	id     volumeID
	queue  []*work // the first one runs
	kept   *work   // the last that ended; nil while one runs
	behind []*work // that ended beside a call that hangs, and hold the volume still
}

// volumeID tells one volume from another. What the kernel does not tell is 0.
type volumeID struct {
	dev, ino, fsid, mount uint64
	born                  int64 // ns
}

// errMoved says that the root is not the volume that was looked at.
var errMoved = errors.New("another directory lies there by now")

// work is one run, in the queue, under way or ended.
type work struct {
	volume *volume
	root   string // as the first caller named it, absolute
	label  string // in canonical form
	trust  Trust
	shared bool // more calls than one asked for it

	done     chan struct{}
	report   Report
	err      error
	released chan struct{} // closed when nothing is open any more

	ctx     context.Context // of the first caller, without its end
	since   time.Time       // when it began or, before that, was asked for
	stop    context.CancelCauseFunc
	stopped bool // nobody joins any more
	callers int
	left    int       // callers who left, and did not come back
	idle    int       // how often it was left by all
	far     *Progress // nil when it has ended
	waits   string    // what held it up when it had seen as much as heldUpAt
	heldUp  int64
}

// Tree is Tree with the Group's Options and t as their Trust, shared with all who ask
// for the same. Who asks for another label, or with another trust, waits for its turn.
// When ctx ends first the error is a *PendingError, and the work goes on; or a *HungError
// if the filesystem did not even tell what root is. The Report beside them says
// nothing. Both errors are found by errors.Is to be what ended ctx. A relative root
// is ENAMETOOLONG in a working directory that is deeper than PATH_MAX.
func (g *Group) Tree(ctx context.Context, root, label string, t Trust) (Report, error) {
	none := Report{Root: root, Label: label}
	want, err := secctx.Canonical(label)
	if err != nil {
		return none, err
	}
	none.Label = want
	if err := foreign(root); err != nil {
		return none, err
	}
	path, err := absolute(root)
	for err == nil {
		var w *work
		var waited bool
		if w, waited, err = g.arrive(ctx, place{path, want, t}); err != nil {
			break
		}
		select {
		case <-w.done:
		case <-ctx.Done():
			if p := g.leave(w); p != nil {
				p.Root, p.Cause = root, ending(ctx)
				return none, p
			}
		}
		if errors.Is(w.err, errMoved) {
			continue
		}
		if waited {
			goOn(w.err)
		}
		report := w.report
		g.mu.Lock()
		report.Shared = w.shared
		g.mu.Unlock()
		report.Root, report.Notes = root, slices.Clone(report.Notes)
		return report, w.err
	}
	return none, err
}

// absolute is where root lies, whatever becomes the working directory later. It is
// not cleaned: a slash at the end leads to what a link leads to. It is an error where
// the kernel does not tell the working directory, which may then have changed before
// the volume is opened. (os.Getwd looks at all that lies beside it, and may hang.)
func absolute(root string) (string, error) {
	if root == "" || filepath.IsAbs(root) {
		return root, nil
	}
	wd, err := syscall.Getwd()
	if err != nil {
		return "", &fs.PathError{Op: "getcwd", Path: root, Err: err}
	}
	return wd + "/" + root, nil
}

// arrive finds or begins the work that a caller waits for, if it has not ended.
func (g *Group) arrive(ctx context.Context, p place) (w *work, waits bool, err error) {
	if ctx.Err() != nil {
		return nil, false, ending(ctx)
	}
	a, err := g.register(p.root)
	if err != nil {
		return nil, false, err
	}
	l, err := g.look(ctx, a, p)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.arrivals, a)
	if a.isStopped() {
		return nil, false, ErrStopped
	}
	if err != nil {
		return nil, false, err
	}
	w = g.join(ctx, l, p)
	select {
	case <-w.done: // it was kept
	default:
		waits = true
	}
	return w, waits, nil
}

// Work tells of all work in the queue and under way.
func (g *Group) Work() []Work {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Work
	for _, v := range g.volumes {
		for _, w := range v.queue {
			all = append(all, w.shown())
		}
	}
	return all
}

// find needs no index: there are as many volumes as are at work, and those of
// the last two minutes.
func (g *Group) find(id volumeID) *volume {
	for _, v := range g.volumes {
		if v.id == id {
			return v
		}
	}
	return nil
}

// join finds or begins the work that the caller waits for, and counts the
// caller. The work may have ended. mu is held.
func (g *Group) join(ctx context.Context, l *look, p place) *work {
	v := g.find(l.id)
	if v == nil {
		v = &volume{id: l.id}
		g.volumes = append(g.volumes, v)
	}
	if w := v.kept; w != nil && w.is(p) && w != l.doubt {
		w.shared = true
		if w.left--; w.err != nil || w.left == 0 {
			g.forget(w)
		}
		return w
	}
	for _, w := range v.queue {
		if w.is(p) && !w.stopped {
			w.shared = true
			w.callers++
			w.left = max(0, w.left-1)
			return w
		}
	}
	w := &work{
		volume: v, root: p.root, label: p.label, trust: p.trust, callers: 1, since: time.Now(), far: new(Progress), ctx: context.WithoutCancel(ctx),
		done: make(chan struct{}), released: make(chan struct{}),
	}
	if v.queue = append(v.queue, w); len(v.queue) == 1 {
		g.begin(w)
	}
	return w
}

// leave is for a caller whose time is up. It returns nil if the work has ended.
func (g *Group) leave(w *work) *PendingError {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.done:
		return nil
	default:
	}
	p := &PendingError{Work: w.shown(), Within: max(0, or(g.Linger))}
	p.Callers--
	w.left++
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
		w.stop(nil)
	default:
		w.volume.queue = slices.Delete(w.volume.queue, i, i+1)
	}
}

// is says whether w is what p asks for.
func (w *work) is(p place) bool { return w.label == p.label && w.trust == p.trust }

// seen is how many entries the run has met.
func (w *work) seen() int64 {
	if w.far == nil {
		return 0
	}
	s, _ := w.far.State()
	return s.Seen
}

func (w *work) shown() Work {
	p := Work{
		Root: w.root, Label: w.label, Trust: w.trust, Entries: w.seen(),
		Elapsed: time.Since(w.since), Callers: w.callers,
	}
	if first := w.volume.queue[0]; first != w {
		p.Waits = "the relabel to " + first.label
	} else if w.heldUp == p.Entries {
		p.Waits = w.waits
	}
	return p
}
