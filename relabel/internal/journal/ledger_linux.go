// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"sync"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// To wait for the record's disk costs some milliseconds, so entries wait together:
// on pages, of a directory each, in the ledger, until a worker takes all of them to
// the Recorder.
//
// A page belongs to the worker that fills it, then, by the ledger's mutex, to the one
// that takes it. Orderings: Wait says to one worker only that nobody is to take the
// pages yet, and it makes a piece of work of that, after which Again is asked. So
// while pages wait, a piece of work is pending that takes them, or under way, and
// the walk does not end before them.

const (
	// waitMost is how much may wait, in bytes by the reckoning of Page.size: some
	// 100,000 entries, a tenth of a second of writing for each wait of 2 ms.
	waitMost = 8 << 20
	// short is a tenth of a wait for the disk, and there are so many at most.
	short     = 200 * time.Microsecond
	shortMost = 20
)

// Page is entries of one directory of the walk, a D, that wait to be on record.
type Page[D any] struct {
	Dir     D
	Depth   int           // of the directory
	Self    bool          // it is the directory's own label that waits
	Done    bool          // and its entries are not to be read after that
	Records []byte        // directory records; none for Self
	had     []undo.Former // in their order
}

// Add puts an entry on the page, which is no directory but the one that the page is of.
// ino and kind are those of its record; f has no name yet, but for that directory.
func (p *Page[D]) Add(ino uint64, kind sys.Kind, name []byte, f undo.Former) {
	if !p.Self {
		p.Records = sys.AppendRecord(p.Records, ino, kind, name)
	}
	p.had = append(p.had, f)
}

// Former is what goes on record of a label. What cannot be recorded is not written.
func Former(has xattrio.Label) (undo.Former, sys.Errno) {
	if has.Long {
		return undo.Former{}, syscall.ERANGE
	}
	return undo.Former{Label: string(has.Stored), None: has.None}, 0
}

// size is what the page takes, with what the path of its directory takes when it
// is recorded.
func (p *Page[D]) size() int { return 128 + len(p.Records) + 72*len(p.had) + 64*p.Depth }

// Recorded is the page as the Recorder gets it. dir is the path of the directory that
// its entries are in.
func (p *Page[D]) Recorded(dir string) undo.Page {
	if !p.Self {
		all, at := string(p.Records), 0
		for i := range p.had {
			e, length, _ := sys.Parse(p.Records[at:]) // which Add made
			p.had[i].Name = all[at+sys.NameAt:][:len(e.Name)]
			at += length
		}
	}
	return undo.Page{Dir: dir, Entries: p.had}
}

// Ledger is the pages that wait.
type Ledger[D any] struct {
	Most int // pages; set while no worker is at work

	mu    sync.Mutex
	pages []*Page[D]
	size  int
	due   bool // a piece of work that takes them is pending, or under way
}

// Wait puts p with the pages that wait. Where it is the first, the caller is to give
// the work of taking them; where they are full, to take them at once.
func (l *Ledger[D]) Wait(p *Page[D]) (first, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first = !l.due
	l.due = true
	l.pages = append(l.pages, p)
	l.size += p.size()
	return first, l.size > waitMost || len(l.pages) > l.Most
}

// Gather gives others a moment, as long as they find more: a wait for the disk is as
// long for much as for little.
func (l *Ledger[D]) Gather(stopped func() bool) {
	for size, rounds := -1, 0; rounds < shortMost && !stopped(); rounds++ {
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

// Take returns all that wait. They are the caller's.
func (l *Ledger[D]) Take() []*Page[D] {
	l.mu.Lock()
	defer l.mu.Unlock()
	pages := l.pages
	l.pages, l.size = nil, 0
	return pages
}

// Again ends the work that the first page made. It says whether more wait: then it is
// to be given again.
func (l *Ledger[D]) Again() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = len(l.pages) > 0
	return l.due
}
