// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"fmt"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

const (
	// StepsOpen directories on the way to the last one stay open; what lies deeper
	// is opened each time.
	StepsOpen = 16
	// labelsMost bounds the labels that are kept ready for writing.
	labelsMost = 256
)

// tree is what lies beneath the top of a mount, for one worker.
type tree struct {
	m      *mounts.Mount
	label  string // that the run gave; "" by rules, where each entry has its own on record
	dryRun bool
	io     xattrio.IO
	labels map[string]*sys.Attr // ready for writing
	steps  []step               // from the top to the directory
	dir    int                  // where the entries are: the last step, or deeper
	deep   bool
}

// newTree returns the tree in m, to which a run gave the label, which is canonical.
func newTree(m *mounts.Mount, label string, dryRun bool) *tree {
	t := &tree{m: m, label: label, dryRun: dryRun, io: xattrio.New(label), labels: make(map[string]*sys.Attr)}
	t.io.Pin, t.io.Stale = m.Pin, m.Stale
	return t
}

// step is a directory that is open.
type step struct {
	name string
	fd   int
}

// Outcome is what became of an entry.
type Outcome uint8

// The outcomes.
const (
	Restored Outcome = iota // or, in a dry run, would be
	Right                   // it had its former label
	Gone
	Left // alone, for the reason Why
	Failed
)

// Result is what became of an entry, and what it is.
type Result struct {
	Outcome Outcome
	Why     string
	Op      string // Failed
	Err     error
	Stat    sys.Stat
}

// unreached is the Result for a name that was answered by e, and what is behind it.
func unreached(op string, e sys.Errno) Result {
	switch xattrio.Judge(e) {
	case xattrio.Gone:
		return Result{Outcome: Gone}
	case xattrio.Foreign:
		return Result{Outcome: Left, Why: mounts.OtherFilesystem}
	}
	return Result{Outcome: Failed, Op: op, Err: e}
}

// enter opens the directory dir, names joined by slashes, from the nearest on the
// way that is open.
func (t *tree) enter(dir string) (op string, e sys.Errno) {
	at, rest, n := t.m.Top, dir, 0
	for n < len(t.steps) && rest != "" {
		name, behind, _ := strings.Cut(rest, "/")
		if t.steps[n].name != name {
			break
		}
		at, rest = t.steps[n].fd, behind
		n++
	}
	t.leave(n)
	for t.dir = at; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next, op, e := t.m.OpenDir(t.dir, sys.Cname(name))
		if e = xattrio.Absent(t.dir, e); xattrio.Judge(e) == xattrio.Changed {
			e = syscall.ENOENT // there is no directory of that name
		}
		if e != 0 {
			return op, e
		}
		if t.deep {
			sys.Close(t.dir)
		}
		if t.deep = len(t.steps) == StepsOpen; !t.deep {
			t.steps = append(t.steps, step{name, next})
		}
		t.dir = next
	}
	return "", 0
}

// leave closes the steps from n on, and what is deeper.
func (t *tree) leave(n int) {
	if t.deep {
		sys.Close(t.dir)
		t.deep = false
	}
	for _, s := range t.steps[n:] {
		sys.Close(s.fd)
	}
	t.steps = t.steps[:n]
}

// entry restores f in the directory that was entered.
func (t *tree) entry(f undo.Former) Result {
	at := xattrio.Target{FD: t.dir, Name: sys.Cname(f.Name)}
	op, e := t.io.Hold(at)
	if e = xattrio.Absent(t.dir, e); e != 0 {
		return unreached(op, e)
	}
	defer t.io.Release(at)
	return t.restore(at, f)
}

// File restores the root in m alone.
func File(m *mounts.Mount, label string, dryRun bool, f undo.Former) Result {
	return newTree(m, label, dryRun).restore(xattrio.Target{FD: m.At, Pinned: true}, f)
}

// restore gives the target, which is pinned, the label of f, if the target is the entry
// that f was recorded of, and still has the run's label.
func (t *tree) restore(at xattrio.Target, f undo.Former) (r Result) {
	var e sys.Errno
	if r.Stat, e = t.io.Stat(at); e != 0 {
		return Result{Outcome: Failed, Op: "statx", Err: e}
	}
	if f.Ino != 0 && f.Ino != r.Stat.Ino {
		return Result{Outcome: Left, Why: "another file has that name now"}
	}
	left := func(why string) Result {
		r.Outcome, r.Why = Left, why
		return r
	}
	has, op, e := t.io.Read(at)
	switch {
	case e != 0:
	case has.Long:
		return left("it has a long label now")
	case has.None == f.None && has.Is(secctx.Trim(f.Label)):
		r.Outcome = Right
		return r
	case has.None:
		return left("it has no label now")
	case !has.Is(cmp.Or(f.Given, t.label)):
		return left(fmt.Sprintf("it has %q now", has))
	case !t.dryRun && f.None:
		if op, e = t.io.Remove(at); e == syscall.ENODATA {
			e = 0
		}
	case !t.dryRun:
		t.io.Attr = t.ready(f.Label)
		op, e = t.io.Write(at)
	}
	if e == 0 && r.Stat.Kind == sys.KindDir { // what was created in it until now has the label of the run
		r.Stat, e = t.io.Stat(at)
		op = "statx"
	}
	switch {
	case e == syscall.EACCES && op == "removexattr":
		r.Outcome, r.Op, r.Err = Failed, op, fmt.Errorf("%w: it had no label, and SELinux does not let one be removed", e)
	case e != 0:
		r.Outcome, r.Op, r.Err = Failed, op, e
	}
	return r
}

// ready is the label, ready for writing.
func (t *tree) ready(label string) *sys.Attr {
	a := t.labels[label]
	if a == nil {
		if len(t.labels) == labelsMost {
			clear(t.labels)
		}
		a = sys.NewAttr(xattrio.Attribute, []byte(label))
		t.labels[label] = a
	}
	return a
}
