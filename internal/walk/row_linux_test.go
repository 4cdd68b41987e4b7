// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
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
		treetest.Must(t, err)
		if records = records[length:]; !sys.IsDot(r.Name) {
			all = append(all, string(r.Name))
		}
	}
	return all
}

// TestLoad: row by row each name is met once, and the entry whose call is under way is known.
func TestLoad(t *testing.T) {
	records, want := listing(3000)
	var got []string
	p := &position{}
	for off := 0; off < len(records); {
		next, err := p.load(Tally{}, records, off, sys.RowLen, nil)
		treetest.Must(t, err)
		if _, name := p.row.call(); name != nil {
			t.Fatal("a call is under way in a row that was just loaded")
		}
		for i := range p.row.n {
			e := p.row.entry(i)
			got = append(got, string(e.Name))
			p.row.names.Step.Store(uint32(2*i + 3))
			if call, name := p.row.call(); name != e.Cname() || call != xattrio.Writes(p.row.way) {
				t.Fatalf("%v; want a write of %q", call, e.Name)
			}
		}
		off = next
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%d names of %d", len(got), len(want))
	}
}

// TestFirstOf: it ends behind so many entries, or where the records do, and is an error before
// what is malformed.
func TestFirstOf(t *testing.T) {
	records, all := listing(100)
	for want, name := range map[int]string{3: all[0], 4: all[1], 5: all[2], 1000: all[len(all)-1]} {
		end, last, err := firstOf(records, want)
		if err != nil || names(t, records[last:end])[0] != name || (end == len(records)) != (want == 1000) {
			t.Errorf("%d: from %d to %d of %d, %v", want, last, end, len(records), err)
		}
	}
	if _, _, err := firstOf(records[:len(records)-1], 1000); err == nil {
		t.Error("no error")
	}
}
