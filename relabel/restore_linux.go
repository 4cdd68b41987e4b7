// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"
	"io/fs"
	"iter"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/caller"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/journal"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/tune"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// The way back from a relabel. What holds for Tree holds here: it is anchored at
// a descriptor of the root, in a private clone where that can be had; each name
// is looked up in its directory and pinned, so that what is compared is what is
// written; the root is sealed first and gets its own label last. It is a simpler
// path than Tree's: directories are found by name from the root, one page after
// the other for each worker, and an entry costs five calls or six.

// restoring is one call of Restore.
type restoring struct {
	*run
	h       undo.Header
	moved   bool // the caller says where the tree is now
	stirred bool // something else may have the label of the run: see journal.Restore
}

func restore(ctx context.Context, path string, h undo.Header, pages iter.Seq2[undo.Page, error], o Options, ask func() capabilities) (Report, error) {
	s := &restoring{h: h, moved: path != ""}
	if !s.moved {
		path = h.Root
	}
	s.run = newRun(Options{
		Workers: o.Workers, Progress: o.Progress, Trace: o.Trace, inner: inner{check: o.inner.check},
		Advanced: Advanced{NoSeal: o.Advanced.NoSeal, NoSync: o.Advanced.NoSync},
	}, path, h.Label)
	return s.lead(ctx, func(ctx context.Context) error { return s.all(ctx, path, pages, ask) })
}

// all is the whole path; the root is opened as Tree opens it.
func (s *restoring) all(ctx context.Context, path string, pages iter.Seq2[undo.Page, error], ask func() capabilities) error {
	if s.h.Label != "" {
		if err := s.wanted(s.h.Label); err != nil {
			return err
		}
	}
	return s.opened(ctx, path, ask, s.ready, func(ctx context.Context, root *mount) error {
		if err := s.learn(root); err != nil {
			return err
		}
		if !s.moved {
			if err := s.sameRoot(root); err != nil {
				return err
			}
		}
		return s.locked(ctx, root, func(ctx context.Context, root *mount) error { return s.close(s.under(ctx, root, pages)) })
	})
}

// ready refuses no root where the record is of a run by rules, which refused none either.
func (s *restoring) ready() error {
	if s.h.Label == "" {
		s.trustless, s.bounds.Refused = s.bounds.Refused, nil
	}
	return nil
}

// under restores the root and what is beneath it. The run has the lock.
func (s *restoring) under(ctx context.Context, root *mount, pages iter.Seq2[undo.Page, error]) error {
	if root.Stat.Kind != sys.KindDir {
		beneath := false
		pages(func(undo.Page, error) bool { beneath = true; return false })
		if beneath { // it was a directory
			return &fs.PathError{Op: "restore", Path: root.Path, Err: undo.ErrOtherTree}
		}
		s.Count(s.became(func() string { return root.Path }, s.h.Former, journal.File(root.Mount, s.want, s.o.inner.check, s.h.Former)))
		return nil
	}
	if op, e := s.enclose(root); e != 0 {
		return s.fatal(pathError(op, root.Path, e))
	}
	defer root.Leave()
	s.tell(func(report *Report) { report.Way = root.Confined.String() + "/" + xattrio.ByDescriptor.String() })
	c, err := s.openCommit(root)
	if err != nil {
		return err
	}
	return s.directory(ctx, root, c, pages)
}

// close judges a restore that came to its end, with err or without.
func (s *restoring) close(err error) error {
	if err == nil && s.Counted(walk.Failed) > 0 {
		err = s.failures()
	}
	if err == nil {
		left := s.Counted(walk.Skipped) > 0 || s.stirred || s.o.inner.check && s.Counted(walk.Written) > 0
		s.tell(func(report *Report) { report.Complete = !left })
	}
	return err
}

// sameRoot makes sure that the root is the one that was labelled.
func (s *restoring) sameRoot(root *mount) error {
	same, e := journal.Same(root.Mount, s.h)
	switch {
	case e != 0:
		return pathError("statx", root.Path, e)
	case !same:
		return &fs.PathError{Op: "restore", Path: root.Path, Err: undo.ErrOtherTree}
	}
	return nil
}

// directory restores what is beneath the root, and then the root.
func (s *restoring) directory(ctx context.Context, root *mount, c *commit.Root, pages iter.Seq2[undo.Page, error]) error {
	if s.byRules() {
		if e := s.void(root); e != 0 {
			return s.fatal(pathError("fsetxattr", root.Path, e))
		}
		defer s.settle(root, true)
	} else if err := c.Undo(secctx.Trim(s.h.Former.Label)); err != nil {
		return err
	}
	s.Count(walk.Skipped) // the root, until it has its own
	share := s.main.Share.Load()
	defer share.Shrink()
	all := &journal.Restore{
		Mount: root.Mount, Root: c, Header: s.h,
		Begin: func() (enter func(path string), end func()) {
			t := s.Task()
			return func(path string) { t.At("setxattr", path) }, func() { t.At("", "") }
		},
		Became: func(path func() string, f undo.Former, r journal.Result) { s.Count(s.became(path, f, r)) },
		Labelled: func(ctx context.Context) (int64, error) {
			share.Shrink() // the workers have ended
			found, err := tree(ctx, root.Path, s.want, Options{OneFilesystem: true, Workers: s.o.Workers, inner: inner{check: true, share: share}}, func() capabilities { return s.capabilities })
			return found.Right, err
		},
	}
	r, err := all.All(ctx, s.workers(share), s.asked(pages))
	if err == nil {
		s.Recount(walk.Skipped, s.became(func() string { return root.Path }, s.h.Former, r))
		s.stirred = all.Stirred()
	}
	return err
}

// workers is how many there are, for which it takes what it can get.
func (s *restoring) workers(share *budget.Share) int {
	workers := s.o.Workers
	if workers < 1 {
		workers = tune.Processors()
	}
	const each = journal.StepsOpen + budget.PerWorker
	files := share.Descriptors(workers * each)
	return 1 + share.Workers(min(workers-1, (budget.LeastFiles+files)/each-1))
}

// asked is pages, with the activity set while the caller's code is under way: see HungCall.
func (s *restoring) asked(pages iter.Seq2[undo.Page, error]) iter.Seq2[undo.Page, error] {
	return func(yield func(undo.Page, error) bool) {
		s.main.At(caller.Code+"pages", "")
		defer s.main.At("", "")
		for p, err := range pages {
			s.main.At("", "")
			if !yield(p, err) {
				return
			}
			s.main.At(caller.Code+"pages", "")
		}
	}
}

// became tells the caller what became of f, and returns how it is counted.
func (s *restoring) became(path func() string, f undo.Former, r journal.Result) walk.Outcome {
	switch r.Outcome {
	case journal.Restored:
		if s.Told.Change != nil {
			s.Change(path(), cmp.Or(f.Given, s.want), secctx.Trim(f.Label))
		}
		return walk.Written
	case journal.Right:
		return walk.Right
	case journal.Gone:
		return walk.Vanished
	case journal.Left:
		if r.Why != "" {
			s.Skip(path(), r.Why)
		}
		return walk.Skipped
	}
	if r.Err != nil {
		s.Failure(path(), r.Op, r.Err)
	}
	return walk.Failed
}
