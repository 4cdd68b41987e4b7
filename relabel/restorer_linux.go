// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// stepsOpen directories on the way to the last page stay open in a restorer; what
// lies deeper is opened for each page.
const stepsOpen = 16

// restorer is one worker of a Restore. All of it is that worker's.
type restorer struct {
	*restoring
	m      *mount
	attr   *sys.Attr            // for reading
	attrs  map[string]*sys.Attr // for writing, by label
	steps  []step               // from the top of the mount to where the last page was
	tally  tally
	strand *strand
}

// step is a directory that is open.
type step struct {
	name string
	fd   int
}

// attrsMost bounds the labels that are kept ready for writing.
const attrsMost = 256

func (s *restoring) restorer(m *mount) *restorer {
	return &restorer{restoring: s, m: m, attr: sys.NewAttr(attribute, nil), attrs: make(map[string]*sys.Attr), strand: s.strand()}
}

// leave ends the worker.
func (w *restorer) leave() {
	w.cut(0)
	w.told()
	w.strand.at("", "")
}

// path is for messages.
func (w *restorer) path(dir, name string) string {
	return strings.TrimRight(strings.TrimRight(w.m.path, "/")+"/"+dir, "/") + "/" + name
}

// page restores the entries of one directory.
func (w *restorer) page(ctx context.Context, p Page) {
	w.strand.at("setxattr", strings.TrimSuffix(w.path(p.Dir, ""), "/"))
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
		case judge(e) == gone || judge(e) == changed:
			w.tally.count(vanished)
		case judge(e) == foreign:
			w.skip(w.path(p.Dir, f.Name), otherFilesystem)
			w.tally.count(skipped)
		default:
			if i == 0 {
				w.report(strings.TrimSuffix(w.path(p.Dir, ""), "/"), op, e)
			}
			w.tally.count(failure)
		}
	}
	w.told()
}

// told adds what was counted to the run's total.
func (w *restorer) told() {
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
		e = absent(at, e)
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
func (w *restorer) entry(fd int, dir string, f Former) outcome {
	at, op, e := w.m.pin(fd, sys.Cname(f.Name))
	e = absent(fd, e)
	switch {
	case judge(e) == gone && e != 0:
		return vanished
	case judge(e) == foreign && e != 0:
		w.skip(w.path(dir, f.Name), otherFilesystem)
		return skipped
	case e != 0:
		w.report(w.path(dir, f.Name), op, e)
		return failure
	}
	defer sys.Close(at)
	return w.one(at, f, func() string { return w.path(dir, f.Name) })
}

// one restores what the O_PATH descriptor at names.
func (w *restorer) one(at int, f Former, path func() string) outcome {
	left := func(why string) outcome {
		w.skip(path(), why)
		return skipped
	}
	fail := func(op string, err error) outcome {
		w.report(path(), op, err)
		return failure
	}
	st, e := sys.Fstatx(at)
	if e != 0 {
		return fail("statx", e)
	}
	if f.Ino != 0 && f.Ino != st.Ino {
		return left("another file has that name meanwhile")
	}
	w.stirred(st)
	n, e := w.attr.GetxattrFd(at)
	none := e == errNoLabel
	if e != 0 && !none && e != errLongLabel {
		return fail("getxattr", e)
	}
	have := ""
	if e == 0 {
		have = string(w.attr.Value(n))
	}
	switch {
	case e != errLongLabel && none == f.None && trim([]byte(have)) == trim([]byte(f.Label)):
		return right
	case e == errLongLabel:
		return left("it bears a long label meanwhile")
	case none:
		return left("it bears no label meanwhile")
	case trim([]byte(have)) != w.want:
		return left(fmt.Sprintf("it bears %q meanwhile", trim([]byte(have))))
	case !w.o.DryRun && f.None:
		switch e := w.attr.RemovexattrFd(at); e {
		case 0, errNoLabel:
		case syscall.EACCES:
			return fail("removexattr", fmt.Errorf("%w: it bore no label, and SELinux lets nobody remove one", e))
		default:
			return fail("removexattr", e)
		}
	case !w.o.DryRun:
		if e := w.writing(f.Label).SetxattrFd(at); e != 0 {
			return fail("setxattr", e)
		}
	}
	if w.o.OnChange != nil {
		p := path()
		w.serially("OnChange", p, func() { w.o.OnChange(p, trim([]byte(f.Label))) })
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
		a = sys.NewAttr(attribute, []byte(label))
		w.attrs[label] = a
	}
	return a
}
