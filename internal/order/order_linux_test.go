// SPDX-License-Identifier: Apache-2.0

package order

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// entries are what sorted ranges of b yield, in their order.
func entries(t *testing.T, b *Entries) []sys.Dirent {
	t.Helper()
	var all []sys.Dirent
	buf := make([]byte, 4096)
	count := b.Sort()
	for i := range count {
		s := b.Range(i)
		for {
			records := s.Next(buf)
			if len(records) == 0 {
				break
			}
			all = append(all, parsed(t, records)...)
		}
		if last := s.Done(); last != (i == count-1) {
			t.Errorf("range %d of %d is the last: %t", i, count, last)
		}
	}
	return all
}

// parsed are the entries in records, but for . and .. .
func parsed(t *testing.T, records []byte) (all []sys.Dirent) {
	t.Helper()
	for len(records) > 0 {
		e, length, err := sys.Parse(records)
		treetest.Must(t, err)
		if !sys.IsDot(e.Name) {
			e.Name = slices.Clone(e.Name)
			all = append(all, e)
		}
		records = records[length:]
	}
	return all
}

// listing is the buffer of n entries, the inode number of each by ino.
func listing(n int, ino func(i int) uint64) []byte {
	buf := sys.AppendRecord(nil, 2, sys.KindDir, []byte("."))
	buf = sys.AppendRecord(buf, 2, sys.KindDir, []byte(".."))
	kinds := []sys.Kind{sys.KindFile, sys.KindDir, sys.KindUnknown}
	for i := range n {
		buf = sys.AppendRecord(buf, ino(i), kinds[i%len(kinds)], fmt.Append(nil, i))
	}
	return buf
}

// TestSort: by inode number, nothing lost, whatever the numbers have in
// common.
func TestSort(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	b := (*Entries)(nil).Begin(2 << 20) // its memory is used again
	for _, n := range []int{0, 1, 2, 3000, 100, 70000} {
		for _, mask := range []uint64{0, 1, 1 << 31, 0x7ff, 0x3ff800, 0xffc00000, 0xfffffff0} {
			inos := make([]uint64, n)
			for i := range inos {
				inos[i] = random.Uint64()&mask + 12
			}
			records := listing(n, func(i int) uint64 { return inos[i] })
			b = b.Begin(0)
			if err := b.Put(records); err != nil || len(b.index) != n {
				t.Fatalf("%d of %d: %v", len(b.index), n, err)
			}
			got := entries(t, b)
			if !slices.IsSortedFunc(got, byIno) {
				t.Errorf("%d entries of %x are not sorted", n, mask)
			}
			same(t, got, records)
		}
	}
}

func byIno(a, b sys.Dirent) int { return int(a.Ino) - int(b.Ino) }

// same compares entries, in any order, with records.
func same(t *testing.T, got []sys.Dirent, records []byte) {
	t.Helper()
	want := parsed(t, records)
	for _, all := range [][]sys.Dirent{got, want} {
		slices.SortFunc(all, func(a, b sys.Dirent) int { return bytes.Compare(a.Name, b.Name) })
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%d entries are not the %d that there are", len(got), len(want))
	}
}

// TestMalformed: entries before a malformed record are kept, and it is an error.
func TestMalformed(t *testing.T) {
	records := append(listing(2, func(i int) uint64 { return uint64(i) }), 1, 2, 3)
	b := (*Entries)(nil).Begin(4096)
	if err := b.Put(records); err == nil || len(b.index) != 2 {
		t.Errorf("%d entries: %v", len(b.index), err)
	}
	tooLong := sys.AppendRecord(nil, 1, sys.KindFile, []byte(".."+strings.Repeat("n", 256)))
	if err := b.Put(tooLong); err == nil || len(b.index) != 2 {
		t.Errorf("a name of 258 bytes: %d entries, %v", len(b.index), err)
	}
}

// TestBudget: what there is room for takes no more memory than was reserved, with short names
// and with long ones; memory is reserved where there is too little, and not where there is enough.
func TestBudget(t *testing.T) {
	const budget = 64 << 10
	for _, length := range []int{1, 249} {
		e := (*Entries)(nil).Begin(budget)
		record := sys.AppendRecord(nil, 1, sys.KindFile, []byte(strings.Repeat("n", length)))
		names, index := cap(e.names), cap(e.index)
		for e.Room(len(record)) {
			treetest.Must(t, e.Put(record))
		}
		if len(e.index) < budget/(length+20)-20 || cap(e.names) != names || cap(e.index) != index {
			t.Errorf("%d names of %d bytes: memory for %d bytes became %d, for %d words %d", len(e.index), length, names, cap(e.names), index, cap(e.index))
		}
		if e.Begin(budget+1) == e || e.Begin(budget-1) != e {
			t.Error("memory is reserved where there is enough, or not where there is too little")
		}
	}
}

// TestRoom: a directory that does not fit gets what there is to spare, but no more than
// it needs nor than the bound.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		size, spare int64
		want        int
	}{
		{100, 1 << 40, 1000},
		{1000, 1 << 40, 1000},
		{5000, 1 << 40, 5000},
		{5000, 3000, 3000},
		{5000, 10, 1000},
		{5000, 0, 1000},
		{1 << 40, 1 << 40, mostBudget},
	} {
		s := Sorting{From: 1, Budget: 1000, Memory: func() int64 { return c.spare }}
		if got := s.Room(c.size); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
		s.Memory = nil
		if got := s.Room(c.size); got != 1000 {
			t.Errorf("%+v: %d without more", c, got)
		}
	}
}
