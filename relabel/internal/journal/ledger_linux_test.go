// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"reflect"
	"sync"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/internal/journal"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// TestLedger: whatever many put on it at once is taken once, and as long as anything
// waits, one of them has been told to give the work of taking it.
func TestLedger(t *testing.T) {
	const workers, each = 8, 1000
	l := &journal.Ledger[int]{Most: workers * each}
	work := make(chan struct{}, workers*each) // the pool, in which each page could be an item
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for j := range each {
				if first, _ := l.Wait(&journal.Page[int]{Dir: i*each + j}); first {
					work <- struct{}{}
				}
			}
		})
	}
	seen := map[int]int{}
	take := func() {
		l.Gather(func() bool { return false })
		for _, p := range l.Take() {
			seen[p.Dir]++
		}
		if l.Again() {
			work <- struct{}{}
		}
	}
	<-work // one pool, which ends when it has no work
	take()
	all.Wait()
	for len(work) > 0 {
		<-work
		take()
	}
	for p, times := range seen {
		if times != 1 {
			t.Errorf("page %d was taken %d times", p, times)
		}
	}
	if len(seen) != workers*each {
		t.Errorf("%d of %d pages were taken", len(seen), workers*each)
	}
}

// TestLedgerFull: it is full of so many pages, or of much on few.
func TestLedgerFull(t *testing.T) {
	l := &journal.Ledger[int]{Most: 2}
	for i, want := range []bool{false, false, true, true} {
		if _, full := l.Wait(&journal.Page[int]{}); full != want {
			t.Errorf("page %d: full %t", i, full)
		}
	}
	l.Take()
	if _, full := l.Wait(&journal.Page[int]{Records: make([]byte, 8<<20)}); !full {
		t.Error("it takes 8 MiB")
	}
}

// TestPage: entries get their names from their records; a directory has its own.
func TestPage(t *testing.T) {
	p := &journal.Page[int]{}
	p.Add(7, sys.KindLink, []byte("a"), undo.Former{Ino: 7, Label: "x"})
	p.Add(8, sys.KindFile, []byte("long\xff\n"), undo.Former{None: true})
	want := undo.Page{Dir: "d/e", Entries: []undo.Former{{Name: "a", Ino: 7, Label: "x"}, {Name: "long\xff\n", None: true}}}
	if got := p.Recorded("d/e"); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	self := &journal.Page[int]{Self: true}
	self.Add(9, sys.KindDir, nil, undo.Former{Name: "e", Ino: 9})
	if got := self.Recorded("d"); !reflect.DeepEqual(got, undo.Page{Dir: "d", Entries: []undo.Former{{Name: "e", Ino: 9}}}) || len(self.Records) > 0 {
		t.Errorf("%+v", got)
	}
}
