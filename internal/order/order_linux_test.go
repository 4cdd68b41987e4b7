// SPDX-License-Identifier: Apache-2.0

package order

import (
	"bytes"
	"fmt"
	"math"
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
			treetest.Must(t, each(records, func(e sys.Dirent) { e.Name = slices.Clone(e.Name); all = append(all, e) }))
		}
		if last := s.Done(); last != (i == count-1) {
			t.Errorf("range %d of %d is the last: %t", i, count, last)
		}
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
	var want []sys.Dirent
	treetest.Must(t, each(records, func(e sys.Dirent) { e.Name = slices.Clone(e.Name); want = append(want, e) }))
	for _, all := range [][]sys.Dirent{got, want} {
		slices.SortFunc(all, func(a, b sys.Dirent) int { return bytes.Compare(a.Name, b.Name) })
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%d entries are not the %d that there are", len(got), len(want))
	}
}

// TestPlan: of a directory that does not fit at once each entry is kept in one
// reading, in the order of inode numbers over all of them.
func TestPlan(t *testing.T) {
	const n = 20_000
	random := rand.New(rand.NewPCG(5, 6))
	for _, buckets := range []uint64{1, 7, 40, 1000} {
		records := listing(n, func(int) uint64 { return random.Uint64N(buckets << bucketBits) })
		p := (*Entries)(nil).Begin(64 << 10)
		var got []sys.Dirent
		readings := 0
		for more := true; more; readings++ {
			p.Next()
			for _, part := range [][]byte{records[:32*(n/3)], records[32*(n/3):]} {
				treetest.Must(t, p.Add(part))
			}
			if more = p.Fits() && p.More(); p.Fits() {
				got = append(got, entries(t, p)...)
			}
		}
		if fits := buckets > 1; p.Fits() != fits {
			t.Errorf("%d buckets: fits: %t", buckets, p.Fits())
		} else if !fits {
			continue
		}
		if readings < 3 || readings > 12 || !slices.IsSortedFunc(got, byIno) {
			t.Errorf("%d buckets: %d readings, sorted: %t", buckets, readings, slices.IsSortedFunc(got, byIno))
		}
		same(t, got, records)
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

// long is a record with a name of 249 bytes: 258 bytes of the budget.
func long(ino uint64) []byte {
	return sys.AppendRecord(nil, ino, sys.KindFile, []byte(strings.Repeat("n", 249)))
}

// TestFull: names of a few inodes that exceed the budget are refused as soon as
// they do, without a look at those kept for each that follows.
func TestFull(t *testing.T) {
	const budget = 64 << 10
	for _, c := range []struct {
		what    string
		buckets uint64 // among which the names are spread
		full    bool
	}{
		{"one bucket", 1, true},
		{"two buckets", 2, true},
		{"many buckets", 100, false},
	} {
		p := (*Entries)(nil).Begin(budget)
		p.Next()
		room, n := cap(p.names), 0
		for p.Fits() && n < 10_000 {
			treetest.Must(t, p.Add(long(uint64(n)%c.buckets<<bucketBits)))
			n++
		}
		// With two buckets the range is cut down to one of them on the way.
		if most := int(c.buckets) * budget / 250; p.Fits() == c.full || c.full && n > most+1 {
			t.Errorf("%s: after %d names it fits: %t", c.what, n, p.Fits())
		}
		if cap(p.names) != room || p.size() > budget+sys.RecordMax {
			t.Errorf("%s: memory for %d bytes became %d", c.what, room, cap(p.names))
		}
	}
}

// TestReadings: a directory is read a bounded number of times, and what was not
// reached by then is left. A bucket counts no further than the counter goes.
func TestReadings(t *testing.T) {
	const budget, buckets = 4 << 10, 3 * mostReadings
	p := (*Entries)(nil).Begin(budget)
	readings, kept := 0, 0
	for p.Next(); p.Fits(); p.Next() {
		readings++
		for i := range uint64(buckets * 10) {
			if ino := i / 10 << bucketBits; ino >= p.From() {
				if err := p.Add(long(ino)); err != nil || !p.Fits() {
					t.Fatal("does not fit", err)
				}
			}
		}
		kept += len(p.index)
	}
	if readings != mostReadings || p.From() != uint64(kept/10)<<bucketBits {
		t.Errorf("%d readings kept %d; the next begins at %d", readings, kept, p.From()>>bucketBits)
	}
	if p.Begin(budget+1) == p || p.Begin(budget-1) != p {
		t.Error("memory is reserved where there is enough, or not where there is too little")
	}
	p.Next()
	p.weights = append(p.weights, math.MaxUint32-3)
	if err := p.Add(long(0)); err != nil || p.weights[0] != math.MaxUint32 {
		t.Errorf("a bucket counts %d: %v", p.weights[0], err)
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
		if got, _ := s.Room(c.size); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
		s.Memory = nil
		if got, _ := s.Room(c.size); got != 1000 {
			t.Errorf("%+v: %d without more", c, got)
		}
	}
}
