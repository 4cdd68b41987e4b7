// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/journal"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// With a Recorder every label is read before it is written, and on disk there
// before it is overwritten here. To wait for the disk costs some milliseconds,
// so entries wait together: a worker that finds wrong labels puts them on a
// page, which waits in the ledger, and reads on elsewhere. A worker that has
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
// A page belongs to the worker that fills it, then to the ledger and to the one that
// takes it (package journal), then, by the pool's deques, to the one that writes it.
// A page becomes an item after Keep returned, and nothing but an item with a page
// writes (worker.journaled).

const (
	// openMost directories are open at most: those that wait stay open, while
	// the limit on descriptors lets them.
	openMost = 16384
	// pagesMost wait at most. The directories found until then have their parents
	// open too, some ten times as many.
	pagesMost = 1024
)

// page is what waits of one directory.
type page = journal.Page[*Dir]

// paging is what a worker has at hand for the record.
type paging struct {
	page      *page      // being filled
	journaled bool       // what is labelled now was recorded
	found     *sys.Found // what a row had
	last      string     // the last label that was met and was wrong
}

// keeps says that what is wrong is to be put on a page, not written.
func (w *worker) keeps() bool { return w.ledger != nil && !w.journaled }

// put notes that t, which has was, is to be written. d is the directory that t
// is in or, where t has no name, t itself.
func (w *worker) put(d *Dir, t xattrio.Target, was undo.Former) {
	st, e := w.io.Stat(t)
	if e != 0 || st.Kind == sys.KindDir { // it has just become one
		st.Kind = sys.KindFile
	}
	was.Given = w.writing
	if t.Name != nil {
		w.add(d, st.Ino, st.Kind, []byte(t.String()), was)
		return
	}
	w.turnPage()
	w.page = &page{Dir: d, Depth: int(d.Depth), Self: true}
	was.Name, was.Ino = d.Name[:len(d.Name)-1], st.Ino
	w.page.Add(st.Ino, sys.KindDir, nil, was)
}

// defers says that the directory d, of which the worker is in, waits for its own
// label, and whether its entries are to be read then.
func (w *worker) defers(d *Dir, done bool) bool {
	p := w.page
	if p == nil || !p.Self || p.Dir != d {
		return false
	}
	p.Done = done
	w.turnPage()
	return true
}

// add puts a name on the page of d.
func (w *worker) add(d *Dir, ino uint64, kind sys.Kind, name []byte, was undo.Former) {
	if w.page == nil || w.page.Dir != d {
		w.turnPage()
		w.page = &page{Dir: d, Depth: int(d.Depth)}
	}
	if w.m.Tells {
		was.Ino = ino
	}
	w.page.Add(ino, kind, name, was)
}

// turnPage lets the page at hand wait in the ledger. If too much does, it is kept
// at once.
func (w *worker) turnPage() {
	p := w.page
	if p == nil {
		return
	}
	w.page = nil
	w.cache.Expect(p.Dir)
	first, full := w.ledger.Wait(p)
	if first {
		w.give(item{kind: keepPages})
	}
	if full {
		w.keep()
	}
}

// keepDue is for the item that was given when the first page came.
func (w *worker) keepDue() {
	w.ledger.Gather(w.stopped)
	w.keep()
	if w.ledger.Again() {
		w.give(item{kind: keepPages})
	}
}

// keep has all that waits recorded, and makes work of it.
func (w *worker) keep() {
	pages := w.ledger.Take()
	if len(pages) == 0 || w.stopped() {
		return
	}
	ready := make([]undo.Page, len(pages))
	for i, p := range pages {
		in := p.Dir
		if p.Self {
			in = in.Parent
		}
		ready[i] = p.Recorded(in.Beneath())
	}
	w.now(xattrio.Fdatasync)
	var err error
	w.unwatched(func() { err = w.Keep(ready) })
	if err != nil { // what is not kept is not written
		w.halt(err)
		return
	}
	for i := len(pages) - 1; i >= 0; i-- { // the first is pushed last, and so comes first
		w.push(item{kind: writePage, dir: pages[i].Dir, page: pages[i]})
	}
}

// write labels what is on a page that was kept.
func (w *worker) write(p *page) {
	d := p.Dir
	w.at(d, nil)
	fd, op, e := w.cache.Acquire(d)
	switch {
	case e == syscall.ESTALE && p.Self: // closed in between, and no longer what it was: begin anew
		w.cache.Expect(d.Parent)
		w.enter(d.Parent, d.Name)
		return
	case e != 0:
		w.spoil(d, op, e)
		return
	}
	w.journaled = true
	if p.Self {
		w.judged(d, w.label(xattrio.Target{FD: fd}, d))
	} else {
		w.records(d, fd, p.Records)
	}
	w.journaled = false
	if p.Self && !p.Done {
		w.scan(d, fd)
	}
	w.cache.Release(d)
}

// pageRow reads the labels of names of the row, as sweep does, and puts those that
// are wrong on the page.
func (w *worker) pageRow(c *chunk, d *Dir, o sys.Order, i, end int) (int, bool) {
	if w.found == nil {
		w.found = new(sys.Found)
	}
	w.now(xattrio.Row)
	w.name.Store(nil)
	at, trouble, errno := w.io.Look(&c.Row, i, end, o, w.found)
	read := at
	if trouble == sys.ReadErr {
		read--
	}
	for ; i < read; i++ {
		w.eios = 0
		if w.io.Right(w.found, i) {
			w.wrongStreak = 0
			if !d.Note.rereading {
				w.tally.Count(Right)
			}
			continue
		}
		w.wrongStreak++
		w.addFound(c, d, i, w.writing)
	}
	w.passed.Store(w.tally.Seen)
	return w.broken(c, d, o.Dir, i, trouble, errno)
}

// addFound puts name i of the row, which was read and is to get the label to, on the page
// of d.
func (w *worker) addFound(c *chunk, d *Dir, i int, to string) {
	value, has := w.found.At(i)
	if !has || w.last != string(value) {
		w.last = string(value)
	}
	e := c.Entry(i)
	w.add(d, e.Ino, e.Kind, e.Name, undo.Former{Label: w.last, None: !has, Given: to})
}
