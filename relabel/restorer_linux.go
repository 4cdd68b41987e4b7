// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// stepsOpen directories on the way to the last page stay open in a restorer; what
// lies deeper is opened for each page.
const stepsOpen = 16

// restorer is one worker of a Restore. All of it is that worker's.
type restorer struct {
	*restoring
	m     *mount
	io    xattrio.IO
	attrs map[string]*sys.Attr // by the label that is written
	steps []step               // from the top of the mount to where the last page was
	tally tally
	*watch.Activity
}

// step is a directory that is open.
type step struct {
	name string
	fd   int
}

// attrsMost bounds the labels that are kept ready for writing.
const attrsMost = 256

func (s *restoring) restorer(m *mount) *restorer {
	w := &restorer{restoring: s, m: m, io: xattrio.New(s.want), attrs: make(map[string]*sys.Attr), Activity: s.task().Activity}
	w.io.Pin = m.pin
	return w
}

// leave ends the worker.
func (w *restorer) leave() {
	w.cut(0)
	w.addCounts()
	w.At("", "")
}

// path is for messages.
func (w *restorer) path(dir, name string) string {
	return strings.TrimRight(strings.TrimRight(w.m.Path, "/")+"/"+dir, "/") + "/" + name
}

// page restores the entries of one directory.
func (w *restorer) page(ctx context.Context, p undo.Page) {
	w.At("setxattr", strings.TrimSuffix(w.path(p.Dir, ""), "/"))
	fd, passing, op, e := w.open(p.Dir)
	if passing {
		defer sys.Close(fd)
	}
	for i, f := range p.Entries {
		if ctx.Err() != nil {
			break
		}
		switch {
		case e == 0:
			w.tally.count(w.entry(fd, p.Dir, f))
		case xattrio.Judge(e) == xattrio.Gone || xattrio.Judge(e) == xattrio.Changed:
			w.tally.count(vanished)
		case xattrio.Judge(e) == xattrio.Foreign:
			w.skip(w.path(p.Dir, f.Name), otherFilesystem)
			w.tally.count(skipped)
		default:
			if i == 0 {
				w.reportFailure(strings.TrimSuffix(w.path(p.Dir, ""), "/"), op, e)
			}
			w.tally.count(failure)
		}
	}
	w.addCounts()
}

// addCounts adds what was counted to the run's total.
func (w *restorer) addCounts() {
	w.add(w.tally)
	w.tally = tally{}
}

// open opens a directory beneath the top, name by name, from the nearest that is
// open. passing says that the caller closes it.
func (w *restorer) open(dir string) (fd int, passing bool, op string, e sys.Errno) {
	at, rest, n := int(w.m.top.fd), dir, 0
	for n < len(w.steps) && rest != "" {
		name, behind, _ := strings.Cut(rest, "/")
		if w.steps[n].name != name {
			break
		}
		at, rest = w.steps[n].fd, behind
		n++
	}
	w.cut(n)
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next, op, e := w.m.openDir(at, sys.Cname(name))
		e = xattrio.Absent(at, e)
		if passing {
			sys.Close(at)
		}
		if e != 0 {
			return -1, false, op, e
		}
		at = next
		if passing = len(w.steps) == stepsOpen; !passing {
			w.steps = append(w.steps, step{name, at})
		}
	}
	return at, passing, "", 0
}

// cut closes the steps from n on.
func (w *restorer) cut(n int) {
	for _, s := range w.steps[n:] {
		sys.Close(s.fd)
	}
	w.steps = w.steps[:n]
}

// entry restores f in the open directory fd, which is dir.
func (w *restorer) entry(fd int, dir string, f undo.Former) outcome {
	t := xattrio.Target{FD: fd, Name: sys.Cname(f.Name)}
	op, e := w.io.Hold(t)
	e = xattrio.Absent(fd, e)
	switch {
	case xattrio.Judge(e) == xattrio.Gone:
		return vanished
	case xattrio.Judge(e) == xattrio.Foreign:
		w.skip(w.path(dir, f.Name), otherFilesystem)
		return skipped
	case e != 0:
		w.reportFailure(w.path(dir, f.Name), op, e)
		return failure
	}
	defer w.io.Release(t)
	return w.one(t, f, func() string { return w.path(dir, f.Name) })
}

// one restores the label of t, which is pinned.
func (w *restorer) one(t xattrio.Target, f undo.Former, path func() string) outcome {
	left := func(why string) outcome {
		w.skip(path(), why)
		return skipped
	}
	fail := func(op string, err error) outcome {
		w.reportFailure(path(), op, err)
		return failure
	}
	st, e := w.io.Stat(t)
	if e != 0 {
		return fail("statx", e)
	}
	if f.Ino != 0 && f.Ino != st.Ino {
		return left("another file has that name meanwhile")
	}
	w.stirred(st)
	has, op, e := w.io.Read(t)
	was := secctx.Trim(f.Label)
	switch {
	case e != 0:
		return fail(op, e)
	case has.Long:
		return left("it bears a long label meanwhile")
	case has.None == f.None && has.Is(was):
		return right
	case has.None:
		return left("it bears no label meanwhile")
	case !has.Is(w.want):
		return left(fmt.Sprintf("it bears %q meanwhile", has))
	case !w.o.DryRun && f.None:
		switch op, e := w.io.Remove(t); e {
		case 0, syscall.ENODATA:
		case syscall.EACCES:
			return fail(op, fmt.Errorf("%w: it bore no label, and SELinux lets nobody remove one", e))
		default:
			return fail(op, e)
		}
	case !w.o.DryRun:
		w.io.Attr = w.writing(f.Label)
		if op, e := w.io.Write(t); e != 0 {
			return fail(op, e)
		}
	}
	if w.o.OnChange != nil {
		p := path()
		w.serially("OnChange", p, func() { w.o.OnChange(p, was) })
	}
	return written
}

// writing is the label, ready for writing.
func (w *restorer) writing(label string) *sys.Attr {
	a := w.attrs[label]
	if a == nil {
		if len(w.attrs) == attrsMost {
			clear(w.attrs)
		}
		a = sys.NewAttr(xattrio.Attribute, []byte(label))
		w.attrs[label] = a
	}
	return a
}
