// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"io/fs"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/journal"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
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
	h     undo.Header
	was   string      // what the root bore, without a NUL
	stirs atomic.Bool // something was created, renamed or removed since
}

// Restore puts the labels back that a Recorder has kept: pages as Keep was handed
// them, each with memory of its own, of the run that Begin was told of in h. With
// root "" the tree is where it was, at h.Root; that it is the same is made sure
// of, else the error is ErrOtherTree. Any other root is taken at its word, but a
// file for a directory (TestRestoreElsewhere).
//
// An entry that bears neither the label that the run gave nor its former one was
// changed meanwhile: it is left alone, as is one with another inode number than
// recorded, and OnSkip told. In the Report they count as Skipped, entries that are
// gone as Vanished, and those that bear their former label already as Right.
//
// The root gets its own label last, if nothing failed; until then it is sealed. It
// stays sealed, and OnNote is told, where its former label would vouch for what
// need not bear it: where something was left alone, or was created, renamed or
// removed since the run began in a directory that the run labelled, or where the
// record is Partial and entries have the label of the run still. Complete says
// that all is as it was; in a dry run, that nothing is to be written either.
//
// Of o it goes by Threads (0: one for each processor), DryRun, NoSeal, NoSync
// and the callbacks; OnChange is told the label that an entry got, "" for none. The
// errors are those of Tree, ErrOtherTree, and what pages yields.
func Restore(ctx context.Context, root string, h undo.Header, pages iter.Seq2[undo.Page, error], o Options) (Report, error) {
	r, err := restore(ctx, root, h, pages, o, probe)
	goOn(err)
	return r, err
}

func restore(ctx context.Context, path string, h undo.Header, pages iter.Seq2[undo.Page, error], o Options, ask func() capabilities) (Report, error) {
	s := &restoring{h: h, was: secctx.Trim(h.Former.Label)}
	s.run = &run{report: Report{Root: path, Label: h.Label}, o: Options{
		Threads: o.Threads, DryRun: o.DryRun, NoSeal: o.NoSeal, NoSync: o.NoSync, OnBegin: o.OnBegin,
		OnFailure: o.OnFailure, OnChange: o.OnChange, OnSkip: o.OnSkip, OnStall: o.OnStall, OnNote: o.OnNote, OnWait: o.OnWait,
	}}
	s.main = s.task()
	return s.lead(ctx, func(ctx context.Context) error { return s.all(ctx, path, pages, ask) })
}

// all is the whole path; the root is opened as Tree opens it.
func (s *restoring) all(ctx context.Context, path string, pages iter.Seq2[undo.Page, error], ask func() capabilities) error {
	var err error
	if s.want, err = secctx.Canonical(s.h.Label); err != nil {
		return err
	}
	share, err := process.enter(ctx, runFiles+leastFiles)
	if err != nil {
		return err
	}
	s.main.takes(share)
	defer func() { s.main.has().close() }()
	if err := s.prepare(); err != nil {
		return err
	}
	defer s.proc.Close()
	defer s.locks.Close()
	moved := path != ""
	if !moved {
		path = s.h.Root
		s.tell(func(report *Report) { report.Root = path })
	}
	root, err := s.openPrepared(path, ask)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := s.learn(root); err != nil {
		return err
	}
	if !moved {
		if err := s.sameRoot(root); err != nil {
			return err
		}
	}
	held, err := s.lockRoot(ctx, root)
	if err != nil {
		return err
	}
	defer held.Release()
	if root.Stat.Kind != sys.KindDir {
		beneath := false
		pages(func(undo.Page, error) bool { beneath = true; return false })
		if beneath { // it was a directory
			return &fs.PathError{Op: "restore", Path: root.Path, Err: undo.ErrOtherTree}
		}
		w := s.restorer(root)
		w.became(s.h.Former, w.tree.Restore(xattrio.Target{FD: root.At, Pinned: true}, s.h.Former), func() string { return root.Path })
		w.leave()
		return s.close(nil)
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
	return s.close(s.directory(ctx, root, c, pages))
}

// close judges a restore that came to its end, with err or without.
func (s *restoring) close(err error) error {
	if err == nil && s.counted(failure) > 0 {
		err = s.failures()
	}
	if err == nil {
		left := s.counted(skipped) > 0 || s.stirs.Load() || s.o.DryRun && s.counted(written) > 0
		s.tell(func(report *Report) { report.Complete = !left })
	}
	return err
}

// sameRoot makes sure that the root is the one that was labelled.
func (s *restoring) sameRoot(root *mount) error {
	kind, born, e := birth(root.At)
	if e != 0 {
		return pathError("statx", root.Path, e)
	}
	if kind != s.h.Filesystem || root.Stat.Ino != s.h.Ino || !born.Equal(s.h.Birth) {
		return &fs.PathError{Op: "restore", Path: root.Path, Err: undo.ErrOtherTree}
	}
	return nil
}

// directory restores what is beneath the root, and then the root.
func (s *restoring) directory(ctx context.Context, root *mount, c *commit.Root, pages iter.Seq2[undo.Page, error]) error {
	if err := c.Undo(s.was); err != nil {
		return err
	}
	s.count(skipped) // the root, until it has its own
	s.stirred(root.Stat)
	if err := s.apply(ctx, root, pages); err != nil {
		return err
	}
	if s.counted(failure) > 0 {
		return nil
	}
	if s.h.Partial {
		if err := s.remnants(ctx, root); err != nil {
			return err
		}
	}
	switch have := c.Found().String(); {
	case c.Right() || secctx.IsSeal(have, s.want) || secctx.IsSeal(have, s.was):
		return s.rootLast(root, c)
	case have == s.was:
		s.recount(skipped, right)
	case have == "":
		s.skip(root.Path, "it has no label now")
	default:
		s.skip(root.Path, "it has "+have+" now")
	}
	return nil
}

// remnants looks, where the record is Partial, for what has the label of the run
// still.
func (s *restoring) remnants(ctx context.Context, root *mount) error {
	found, err := tree(ctx, root.Path, s.want, Options{DryRun: true, OneFilesystem: true, Threads: s.o.Threads, inner: inner{share: s.main.has()}}, func() capabilities { return s.capabilities })
	if err == nil && found.Right > 0 {
		s.stirs.Store(true)
		s.note("%d entries still have the label of the run: another run may have a record of them", found.Right)
	}
	return err
}

// rootLast gives the root its former label when all else is on disk; or a seal of
// it, where it would vouch for too much.
func (s *restoring) rootLast(root *mount, c *commit.Root) error {
	if s.o.DryRun {
		s.rootIs(root)
		return nil
	}
	if err := c.Sync("syncfs", sys.Syncfs); err != nil {
		return err
	}
	undone := s.was == s.want && s.counted(written)+s.counted(right) > 0
	if !s.o.NoSeal && (undone || s.stirs.Load() || s.counted(skipped) > 1) && c.Withhold(s.was) {
		return c.Sync("fsync", sys.Fsync)
	}
	if e := c.PutBack(s.h.Former.Label, s.h.Former.None); e != 0 {
		s.count(failure)
		s.reportFailure(root.Path, "fsetxattr", e)
		return nil
	}
	s.rootIs(root)
	return c.Sync("fsync", sys.Fsync)
}

// rootIs counts the root as written.
func (s *restoring) rootIs(root *mount) {
	s.recount(skipped, written)
	s.change(root.top, xattrio.Target{}, s.was)
}

// stirred takes note of a directory in which something was created, renamed or
// removed since the run began: that may bear the label of the run.
func (s *restoring) stirred(st sys.Stat) {
	if st.Kind == sys.KindDir && !st.Mtime.Before(s.h.Began) {
		s.stirs.Store(true)
	}
}

// apply goes through the pages with some workers.
func (s *restoring) apply(ctx context.Context, m *mount, pages iter.Seq2[undo.Page, error]) error {
	workers := s.o.Threads
	if workers < 1 {
		workers = processors()
	}
	work := make(chan undo.Page)
	var all sync.WaitGroup
	share := s.main.has()
	files := share.descriptors(workers * (journal.StepsOpen + perWorker))
	workers = 1 + share.workers(min(workers-1, (leastFiles+files)/(journal.StepsOpen+perWorker)-1))
	defer share.shrink()
	for range workers {
		w := s.restorer(m)
		all.Go(func() {
			for p := range work {
				w.page(ctx, p)
			}
			w.leave()
		})
	}
	end := sync.OnceFunc(func() {
		close(work)
		all.Wait()
	})
	defer end() // also when pages panics
	s.main.At(theCallers+"pages", "")
	for p, err := range pages {
		s.main.At("", "")
		if err != nil {
			s.stop(err)
		}
		if ctx.Err() != nil {
			break
		}
		work <- p
		s.main.At(theCallers+"pages", "")
	}
	s.main.At("", "")
	end()
	return context.Cause(ctx)
}
