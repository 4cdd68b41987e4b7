// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// Restore puts back what is on a record: the entries by some workers, one page after
// the other, and the root last. Its functions are called by all of them at once.
type Restore struct {
	Mount  *mounts.Mount
	Root   *commit.Root
	Header undo.Header

	// Begin is told of each worker, which calls enter before it works in a directory,
	// and end when it has ended.
	Begin func() (enter func(path string), end func())
	// Became is told of each entry but the root. A failure without an error is of a
	// directory that was told before.
	Became func(path func() string, f undo.Former, r Result)
	// Labelled counts what has the label of the run still.
	Labelled func(context.Context) (int64, error)

	stirred atomic.Bool
	became  [Failed + 1]atomic.Int64 // by Outcome
}

// Head begins the record of a run that gives the label. The root, in m, has former.
func Head(m *mounts.Mount, label string, former undo.Former) (h undo.Header, e sys.Errno) {
	h = undo.Header{Root: m.Real, Label: label, Began: sys.CoarseTime(), Ino: m.Stat.Ino, Former: former, Claimed: commit.Claimed(m.At)}
	h.Filesystem, h.Birth, e = birth(m.At)
	return h, e
}

// Same says whether the root in m is the one that h is of.
func Same(m *mounts.Mount, h undo.Header) (bool, sys.Errno) {
	kind, born, e := birth(m.At)
	return kind == h.Filesystem && m.Stat.Ino == h.Ino && born.Equal(h.Birth), e
}

// birth is on what kind of filesystem the file lies, and since when.
func birth(fd int) (kind int64, born time.Time, e sys.Errno) {
	if kind, e = sys.FSType(fd); e == 0 {
		born, e = sys.Birth(fd)
	}
	return kind, born, e
}

// All restores everything, and returns what became of the root.
func (r *Restore) All(ctx context.Context, workers int, pages iter.Seq2[undo.Page, error]) (Result, error) {
	c, was := r.Root, secctx.Trim(r.Header.Former.Label)
	r.stir(r.Mount.Stat)
	if err := r.beneath(ctx, workers, pages); err != nil {
		return Result{}, err
	}
	if r.Header.Label == "" { // by rules, and no label vouches: the root is an entry like any other
		return File(r.Mount, "", c.DryRun, r.Header.Former), nil
	}
	if r.became[Failed].Load() > 0 {
		return Result{Outcome: Left}, nil
	}
	if r.Header.Partial {
		n, err := r.Labelled(ctx)
		if err != nil {
			return Result{}, err
		}
		if n > 0 {
			r.stirred.Store(true)
			c.Note("%d entries still have the label of the run: another run may have a record of them", n)
		}
	}
	switch have := c.Found().String(); {
	case have == c.Want || secctx.IsSeal(have, c.Want) || secctx.IsSeal(have, was) || have == was && c.Unfinished():
		return r.last(was)
	case have == was:
		return Result{Outcome: Right}, nil
	case have == "":
		return Result{Outcome: Left, Why: "it has no label now"}, nil
	default:
		return Result{Outcome: Left, Why: "it has " + have + " now"}, nil
	}
}

// last gives the root its former label when all else is on disk; or a seal of it,
// where it would vouch for too much.
func (r *Restore) last(was string) (Result, error) {
	c := r.Root
	if c.DryRun {
		return Result{Outcome: Restored}, nil
	}
	if err := c.Sync("syncfs", sys.Syncfs); err != nil {
		return Result{}, err
	}
	if r.Header.Claimed {
		if _, e := commit.Disavow(c.FD); e != 0 {
			return Result{Outcome: Failed, Op: "fsetxattr", Err: e}, nil
		}
	}
	if r.withhold(was) {
		return Result{Outcome: Left}, c.Sync("fsync", sys.Fsync)
	}
	if e := c.PutBack(r.Header.Former.Label, r.Header.Former.None); e != 0 {
		return Result{Outcome: Failed, Op: "fsetxattr", Err: e}, nil
	}
	if r.withhold(was) { // something was created there until it had the label
		return Result{Outcome: Left}, c.Sync("fsync", sys.Fsync)
	}
	if !r.Header.Claimed {
		c.Entrust()
	}
	if secctx.IsSeal(was, c.Want) {
		c.Note("the root is sealed, as it was: an earlier run did not complete, and may have a record of its own")
	}
	return Result{Outcome: Restored}, c.Sync("fsync", sys.Fsync)
}

// withhold gives the root a seal where its former label, was, would vouch for too much.
func (r *Restore) withhold(was string) bool {
	c := r.Root
	if st, e := sys.Refresh(c.FD, nil); e == 0 {
		r.stir(st)
	}
	undone := was == c.Want && r.became[Restored].Load()+r.became[Right].Load() > 0
	return !c.NoSeal && (undone || r.Stirred() || r.became[Left].Load() > 0) && c.Withhold(was)
}

// Stirred says whether something else may have the label of the run: something was
// created, renamed or removed since it began, or another run went on with it. By rules no
// label is the run's.
func (r *Restore) Stirred() bool { return r.Header.Label != "" && r.stirred.Load() }

func (r *Restore) stir(st sys.Stat) {
	if st.Kind == sys.KindDir && !st.Mtime.Before(r.Header.Began) {
		r.stirred.Store(true)
	}
}

// beneath goes through the pages with some workers.
func (r *Restore) beneath(ctx context.Context, workers int, pages iter.Seq2[undo.Page, error]) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work := make(chan undo.Page)
	var all sync.WaitGroup
	for range workers {
		enter, end := r.Begin()
		all.Go(func() {
			t := newTree(r.Mount, r.Root.Want, r.Root.DryRun)
			for p := range work {
				enter(r.path(p.Dir))
				r.page(ctx, t, p)
			}
			t.leave(0)
			end()
		})
	}
	end := sync.OnceFunc(func() {
		close(work)
		all.Wait()
	})
	defer end() // also when pages panics
	for p, err := range pages {
		if err != nil {
			stop(err)
		}
		if ctx.Err() != nil {
			break
		}
		work <- p
	}
	end()
	return context.Cause(ctx)
}

// page restores the entries of one directory.
func (r *Restore) page(ctx context.Context, t *tree, p undo.Page) {
	op, e := t.enter(p.Dir)
	for i, f := range p.Entries {
		if ctx.Err() != nil {
			return
		}
		path := func() string { return r.path(p.Dir) + "/" + f.Name }
		var became Result
		if e == 0 {
			became = t.entry(f)
			r.stir(became.Stat)
		} else if became = unreached(op, e); became.Outcome == Failed {
			if path = func() string { return r.path(p.Dir) }; i > 0 {
				became.Err = nil
			}
		}
		r.became[became.Outcome].Add(1)
		r.Became(path, f, became)
	}
}

// path is that of a directory beneath the root, for messages.
func (r *Restore) path(dir string) string {
	return strings.TrimRight(strings.TrimRight(r.Mount.Path, "/")+"/"+dir, "/")
}
