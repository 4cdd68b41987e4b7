// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// listing is records of . and .. and of n files and, after each third, a directory.
func listing(n int) (records []byte, names []string) {
	add := func(ino int, kind sys.Kind, name string) {
		records = sys.AppendRecord(records, uint64(ino), kind, []byte(name))
		names = append(names, name)
	}
	add(1, sys.KindDir, ".")
	add(1, sys.KindDir, "..")
	for i := range n {
		add(100+i, sys.KindFile, fmt.Sprint("file", i))
		if i%3 == 2 {
			add(1000+i, sys.KindDir, fmt.Sprint("dir", i))
		}
	}
	return records, names[2:]
}

// names are those in records, but for the dots.
func names(t *testing.T, records []byte) (all []string) {
	t.Helper()
	for len(records) > 0 {
		r, length, err := sys.Parse(records)
		if err != nil {
			t.Fatal(err)
		}
		if records = records[length:]; !sys.IsDot(r.Name) {
			all = append(all, string(r.Name))
		}
	}
	return all
}

// TestLoad: row by row each name is met once, and the entry whose call is under way is told.
func TestLoad(t *testing.T) {
	records, want := listing(3000)
	var got []string
	c := &Chunk{}
	for off := 0; off < len(records); {
		next, err := c.Load(records, off, sys.RowLen, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := c.Calling(); ok {
			t.Fatal("a call is under way in a row that was just loaded")
		}
		for i := range c.N {
			got = append(got, string(c.Entry(i).Name))
			c.Row.Step.Store(uint32(2*i + 3))
			if e, write, ok := c.Calling(); !ok || !write || string(e.Name) != string(c.Entry(i).Name) {
				t.Fatalf("%q, %t, %t; want a write of %q", e.Name, write, ok, c.Entry(i).Name)
			}
		}
		off = next
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%d names of %d", len(got), len(want))
	}
}

// TestPieces: nothing is lost and nothing too large; what is malformed is in the last.
func TestPieces(t *testing.T) {
	records, want := listing(100)
	for _, tail := range []string{"", "\x01\x02"} {
		pieces := Pieces(append(slices.Clone(records), tail...), 16)
		var got []string
		for i, p := range pieces {
			if i == len(pieces)-1 {
				p = []byte(strings.TrimSuffix(string(p), tail))
			}
			in := names(t, p)
			if got = append(got, in...); len(in) > 16 || len(in) == 0 {
				t.Errorf("%q: piece %d has %d names", tail, i, len(in))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %d names of %d", tail, len(got), len(want))
		}
	}
}

// TestSample: it ends behind the plain entries that were asked for, or where the records
// do, and is an error before what is malformed.
func TestSample(t *testing.T) {
	records, all := listing(100)
	special := map[uint64]bool{100: true} // file0
	for want, name := range map[int]string{1: "file1", 2: "file2", 3: "file3"} {
		end, last, err := Sample(records, want, special)
		if err != nil || string(names(t, records[last:end])[0]) != name {
			t.Errorf("%d: from %d to %d, %v", want, last, end, err)
		}
	}
	if end, last, err := Sample(records, 1000, nil); err != nil || end != len(records) || names(t, records[last:])[0] != all[len(all)-1] {
		t.Errorf("from %d to %d of %d, %v", last, end, len(records), err)
	}
	if _, _, err := Sample(records[:len(records)-1], 1000, nil); err == nil {
		t.Error("no error")
	}
}
