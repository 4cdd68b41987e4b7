// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"strings"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/journal"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// restorer is one worker of a Restore. All of it is that worker's.
type restorer struct {
	*restoring
	m     *mount
	tree  *journal.Tree
	tally tally
	*watch.Activity
}

func (s *restoring) restorer(m *mount) *restorer {
	return &restorer{restoring: s, m: m, tree: journal.New(m.Mount, s.want, s.o.DryRun), Activity: s.task().Activity}
}

// leave ends the worker.
func (w *restorer) leave() {
	w.tree.Close()
	w.addCounts()
	w.At("", "")
}

// path is for messages.
func (w *restorer) path(dir, name string) string {
	return strings.TrimRight(strings.TrimRight(w.m.Path, "/")+"/"+dir, "/") + "/" + name
}

// page restores the entries of one directory.
func (w *restorer) page(ctx context.Context, p undo.Page) {
	dir := strings.TrimSuffix(w.path(p.Dir, ""), "/")
	w.At("setxattr", dir)
	op, e := w.tree.Enter(p.Dir)
	for i, f := range p.Entries {
		if ctx.Err() != nil {
			break
		}
		var r journal.Result
		if e == 0 {
			r = w.tree.Entry(f)
		} else if r = journal.Unreached(op, e); r.Outcome == journal.Failed {
			if w.tally.count(failure); i == 0 {
				w.reportFailure(dir, op, e)
			}
			continue
		}
		w.became(f, r, func() string { return w.path(p.Dir, f.Name) })
	}
	w.addCounts()
}

// became counts and tells what became of f.
func (w *restorer) became(f undo.Former, r journal.Result, path func() string) {
	w.stirred(r.Stat)
	switch r.Outcome {
	case journal.Restored:
		w.tally.count(written)
		if w.o.OnChange != nil {
			p := path()
			w.serially("OnChange", p, func() { w.o.OnChange(p, secctx.Trim(f.Label)) })
		}
	case journal.Right:
		w.tally.count(right)
	case journal.Gone:
		w.tally.count(vanished)
	case journal.Left:
		w.tally.count(skipped)
		w.skip(path(), r.Why)
	case journal.Failed:
		w.tally.count(failure)
		w.reportFailure(path(), r.Op, r.Err)
	}
}

// addCounts adds what was counted to the run's total.
func (w *restorer) addCounts() {
	w.add(w.tally)
	w.tally = tally{}
}
