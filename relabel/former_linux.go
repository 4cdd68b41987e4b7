// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// With a Recorder every label is read before it is written, and on disk there
// before it is overwritten here. To wait for the disk costs some milliseconds,
// so entries wait together: a worker that finds wrong labels puts them on a
// page, which waits in the ledger, and goes on reading elsewhere. Whoever has
// nothing else to do hands all waiting pages to the Recorder, and makes work of
// them when they are on disk: their entries are then written unread.
//
//	reads a directory ▶ page ▶ ledger ▶ Keep ▶ page as an item ▶ writes
//
// A directory's own label is an entry of its parent's page like any other, and
// the directory is read when it was written: what is created in it inherits. So
// a tree is recorded some levels at a time, and a deep one without breadth waits
// for the disk on each level.
//
// Who owns what: a page belongs to the worker that fills it, then, by the
// ledger's mutex, to the one that keeps it, then, by the pool's deques, to the
// one that writes it. Orderings: a page becomes an item after Keep returned, and
// nothing but an item with a page writes (worker.journaled). While pages wait, an
// item that will keep them is pending, or somebody is at it: the pool does not
// end before them.

const (
	// waitMost is how much may wait, in bytes by the reckoning of page.size: some
	// 100,000 entries, a tenth of a second of writing for each wait of 2 ms.
	waitMost = 8 << 20
	// openMost directories are open at most: those that wait stay open, while
	// the limit on descriptors lets them.
	openMost = 16384
	// pagesMost wait at most. The directories found meanwhile have their parents
	// open too, some ten times as many.
	pagesMost = 1024
	// short is a tenth of a wait for the disk, and there are so many at most.
	short     = 200 * time.Microsecond
	shortMost = 20
)

// page is what waits of one directory.
type page struct {
	dir   *dir
	names []byte        // directory records
	was   []undo.Former // what they bore, in their order
	self  bool          // it is the directory's own label that waits
	done  bool          // and its entries are not to be read after that
}

// size is what the page takes, with what the path of its directory takes when it
// is recorded.
func (p *page) size() int { return 128 + len(p.names) + 56*len(p.was) + 64*int(p.dir.deep) }

// ledger is the pages that wait.
type ledger struct {
	to    undo.Recorder
	mu    sync.Mutex
	pages []*page
	size  int
	due   bool // an item that will keep them is pending, or somebody is at it
}

// beginRecord has whatever is written from now on recorded. was is the root's own
// label.
func (r *run) beginRecord(root *mount, was undo.Former) error {
	if r.o.Recorder == nil || r.o.DryRun {
		return nil
	}
	if !r.o.OneFilesystem && len(mountinfo.Beneath(r.proc.Mounts, root.Real)) > 0 {
		return fmt.Errorf("%s: %w: a record is of one filesystem, and another is mounted beneath: leave it alone here, and record it by itself", root.Path, errors.ErrUnsupported)
	}
	if !root.Told() {
		return fmt.Errorf("%s: %w: a record has the path of the root, and this is longer than the kernel takes", root.Path, errors.ErrUnsupported)
	}
	h := undo.Header{Root: root.Real, Label: r.want, Began: sys.CoarseTime(), Ino: root.Stat.Ino, Former: was}
	var e sys.Errno
	if h.Filesystem, h.Birth, e = birth(root.At); e != 0 {
		return pathError("statx", root.Path, e)
	}
	r.main.At("fdatasync", root.Path)
	defer r.main.At("", "")
	r.ledger, r.guesses = &ledger{to: r.o.Recorder}, false
	begun := make(chan error, 1)
	r.call("Recorder.Begin", root.Path, func() { begun <- r.o.Recorder.Begin(h) })
	select {
	case err := <-begun:
		return err
	default: // it panicked, or the run was stopped
		return cmp.Or(r.broken(), context.Canceled)
	}
}

// birth is on what kind of filesystem the file lies, and since when.
func birth(fd int) (kind int64, born time.Time, e sys.Errno) {
	if kind, e = sys.FSType(fd); e == 0 {
		born, e = sys.Birth(fd)
	}
	return kind, born, e
}

// bore is what goes on record of a label. What cannot be recorded is not written.
func bore(has xattrio.Label) (undo.Former, sys.Errno) {
	if has.Long {
		return undo.Former{}, syscall.ERANGE
	}
	return undo.Former{Label: string(has.Stored), None: has.None}, 0
}

// keeps says that what is wrong is to be put on a page, not written.
func (w *worker) keeps() bool { return w.ledger != nil && !w.journaled }

// put notes that t, which bears was, is to be written. d is the directory that t
// is in or, where t has no name, t itself.
func (w *worker) put(d *dir, t xattrio.Target, was undo.Former) {
	ino := uint64(0)
	if st, e := w.io.Stat(t); e == 0 {
		ino = st.Ino
	}
	if t.Name != nil {
		w.add(d, ino, []byte(t.String()), was)
		return
	}
	w.turnPage()
	was.Ino = ino
	w.page = &page{dir: d, self: true, was: []undo.Former{was}}
}

// defers says that the directory d, of which the worker is in, waits for its own
// label, and whether its entries are to be read then.
func (w *worker) defers(d *dir, done bool) bool {
	p := w.page
	if p == nil || !p.self || p.dir != d {
		return false
	}
	p.done = done
	w.turnPage()
	return true
}

// add puts a name on the page of d.
func (w *worker) add(d *dir, ino uint64, name []byte, was undo.Former) {
	if w.page == nil || w.page.dir != d {
		w.turnPage()
		w.page = &page{dir: d}
	}
	if w.m.Tells {
		was.Ino = ino
	}
	w.page.names = sys.AppendRecord(w.page.names, ino, sys.KindFile, name)
	w.page.was = append(w.page.was, was)
}

// turnPage lets the page at hand wait in the ledger. If too much does, it is kept
// at once.
func (w *worker) turnPage() {
	p, l := w.page, w.ledger
	if p == nil {
		return
	}
	w.page = nil
	w.cache.expect(p.dir)
	l.mu.Lock()
	l.pages = append(l.pages, p)
	l.size += p.size()
	full := l.size > waitMost || len(l.pages) > w.pagesMost
	first := !l.due
	l.due = true
	l.mu.Unlock()
	if first {
		w.pool.Give(item{keep: true})
	}
	if full {
		w.keep()
	}
}

// keepDue is for the item that was given when the first page came.
func (w *worker) keepDue() {
	w.gatherMore()
	w.keep()
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	if w.ledger.due = len(w.ledger.pages) > 0; w.ledger.due {
		w.pool.Give(item{keep: true})
	}
}

// gatherMore gives others a moment, as long as they find more to be kept: a wait
// for the disk is as long for much as for little.
func (w *worker) gatherMore() {
	l := w.ledger
	for size, rounds := -1, 0; rounds < shortMost && !w.stopped(); rounds++ {
		l.mu.Lock()
		grows := l.size > size
		size = l.size
		l.mu.Unlock()
		if !grows {
			return
		}
		time.Sleep(short)
	}
}

// keep has all that waits recorded, and makes work of it.
func (w *worker) keep() {
	l := w.ledger
	l.mu.Lock()
	pages := l.pages
	l.pages, l.size = nil, 0
	l.mu.Unlock()
	if len(pages) == 0 || w.stopped() {
		return
	}
	ready := make([]undo.Page, len(pages))
	for i, p := range pages {
		ready[i] = p.forRecorder()
	}
	w.now(xattrio.Fdatasync)
	kept := make(chan error, 1)
	w.telling(func() { w.call("Recorder.Keep", "", func() { kept <- l.to.Keep(ready) }) })
	select {
	case err := <-kept:
		if err != nil {
			w.halt(err)
			return
		}
	default: // it panicked, or the run was stopped: what is not kept is not written
		return
	}
	for i := len(pages) - 1; i >= 0; i-- { // the first is pushed last, and so comes first
		w.pool.Push(item{dir: pages[i].dir, page: pages[i]})
	}
}

// forRecorder is the page as the Recorder gets it.
func (p *page) forRecorder() undo.Page {
	if p.self {
		d := p.dir
		p.was[0].Name = d.name[:len(d.name)-1]
		return undo.Page{Dir: d.parent.beneath(), Entries: p.was}
	}
	all := string(p.names)
	at := 0
	for i := range p.was {
		e, length, _ := sys.Parse(p.names[at:]) // which add made
		p.was[i].Name = all[at+sys.NameAt:][:len(e.Name)]
		at += length
	}
	return undo.Page{Dir: p.dir.beneath(), Entries: p.was}
}

// beneath is the directory's path beneath the top of its mount.
func (d *dir) beneath() string {
	names := 0
	for at := d; at.parent != nil; at = at.parent {
		names += len(at.name)
	}
	if names == 0 {
		return ""
	}
	path := make([]byte, names)
	for at := d; at.parent != nil; at = at.parent {
		names -= len(at.name)
		copy(path[names:], at.name)
		path[names+len(at.name)-1] = '/'
	}
	return string(path[:len(path)-1])
}

// write labels what is on a page that was kept.
func (w *worker) write(p *page) {
	d := p.dir
	w.at(d, nil)
	fd, op, e := w.cache.acquire(d)
	switch {
	case e == syscall.ESTALE && p.self: // closed meanwhile, and no more what it was: begin anew
		w.cache.expect(d.parent)
		w.enter(d.parent, d.name)
		return
	case e != 0:
		w.spoil(d, op, e)
		return
	}
	w.journaled = true
	if p.self {
		d.judged(w, w.label(xattrio.Target{FD: fd}, d))
	} else {
		w.records(d, fd, p.names)
	}
	w.journaled = false
	if p.self && !p.done {
		w.scan(d, fd)
	}
	w.cache.release(d)
}

// look reads the labels of names of the row, as sweep does, and puts those that
// are wrong on the page.
func (w *worker) look(c *chunk, d *dir, o sys.Order, i, end int) (int, bool) {
	if w.found == nil {
		w.found = new(sys.Found)
	}
	w.now(xattrio.Row)
	w.name.Store(nil)
	at, trouble, errno := w.io.Look(&c.row, i, end, o, w.found)
	read := at
	if trouble == sys.ReadErr {
		read--
	}
	for ; i < read; i++ {
		w.eios = 0
		if w.io.Right(w.found, i) {
			w.wrongStreak = 0
			if !d.rereading {
				w.tally.count(right)
			}
			continue
		}
		w.wrongStreak++
		value, has := w.found.At(i)
		if !has || w.last != string(value) {
			w.last = string(value)
		}
		e := c.at(i)
		w.add(d, e.Ino, e.Name, undo.Former{Label: w.last, None: !has})
	}
	w.passed.Store(w.tally.seen)
	return w.broken(c, d, o.Dir, i, trouble, errno)
}
