// SPDX-License-Identifier: Apache-2.0

package undofile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/relabel/undo"
)

var testHead = undo.Header{
	Root: "/va\xffr/pv", Label: "system_u:object_r:container_file_t:s0", Began: time.Unix(1, 2).UTC(),
	Ino: 1 << 40, Birth: time.Unix(3, 4).UTC(), Filesystem: 0xEF53, Former: undo.Former{Label: "a:b:c:s0\x00"},
}

// testPages have what is awkward: no label, an empty one, NUL, bytes, a name like a
// path's end, paths that share a part of a name, inode numbers that go down.
func testPages(n int) []undo.Page {
	pages := []undo.Page{
		{Dir: "", Entries: []undo.Former{{Name: "a", Ino: 1<<63 + 5, Label: "x"}, {Name: "b\n\xff", None: true}, {Name: "...", Ino: 7, Label: ""}}},
		{Dir: "dir", Entries: []undo.Former{{Name: "c", Ino: 3, Label: "x\x00"}}},
		{Dir: "dirt/d", Entries: []undo.Former{{Name: strings.Repeat("n", 255), Ino: 2, Label: strings.Repeat("l", 4000)}}},
	}
	for i := range n {
		p := undo.Page{Dir: fmt.Sprintf("dirt/e%d", i)}
		for j := range 100 {
			p.Entries = append(p.Entries, undo.Former{Name: fmt.Sprintf("f%d", j), Ino: uint64(i*100 + j), Label: fmt.Sprint("l", j%7)})
		}
		pages = append(pages, p)
	}
	return pages
}

// written is a record of the pages, each call of Keep with some of them.
func written(t testing.TB, head undo.Header, pages []undo.Page, whole bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "record")
	w, err := Create(path, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(head); err != nil {
		t.Fatal(err)
	}
	for len(pages) > 0 {
		n := min(50, len(pages))
		if err := w.Keep(pages[:n]); err != nil {
			t.Fatal(err)
		}
		pages = pages[n:]
	}
	if whole {
		w.Complete()
		_, err = w.Close()
	} else {
		err = w.f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func read(path string) (*Reader, []undo.Page, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	r, err := Open(f)
	if err != nil {
		return nil, nil, err
	}
	var pages []undo.Page
	for p, err := range r.Pages() {
		if err != nil {
			return r, pages, err
		}
		pages = append(pages, p)
	}
	return r, pages, nil
}

// TestRoundTrip: what was written is read, of a record with an end and of one
// without, which says so.
func TestRoundTrip(t *testing.T) {
	pages := testPages(300)
	for _, whole := range []bool{true, false} {
		path := written(t, testHead, pages, whole)
		r, got, err := read(path)
		if err != nil || r.Cut == whole || r.Entries != 300*100+5 {
			t.Fatalf("whole %t: %+v, %v", whole, r, err)
		}
		want := testHead
		want.Partial = !whole
		if !reflect.DeepEqual(r.Head, want) {
			t.Errorf("head %+v", r.Head)
		}
		if !reflect.DeepEqual(got, pages) {
			t.Errorf("whole %t: other pages", whole)
		}
		if _, err := Create(path, "test"); !errors.Is(err, os.ErrExist) {
			t.Errorf("an existing file: %v", err)
		}
	}
}

// TestRoundTripRules: by rules the label that each entry is given is on record too.
func TestRoundTripRules(t *testing.T) {
	head, pages := testHead, testPages(30)
	head.Label, head.Former.Given = "", "a:b:d:s0"
	for _, p := range pages {
		for i := range p.Entries {
			p.Entries[i].Given = fmt.Sprint("g", i%3)
		}
	}
	r, got, err := read(written(t, head, pages, true))
	if err != nil || !reflect.DeepEqual(r.Head, head) || !reflect.DeepEqual(got, pages) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestLargePage: one page of more entries than are written as one.
func TestLargePage(t *testing.T) {
	p := undo.Page{Dir: "d"}
	for i := range pagePart*2 + 1 {
		p.Entries = append(p.Entries, undo.Former{Name: fmt.Sprint(i), None: true})
	}
	r, got, err := read(written(t, testHead, []undo.Page{p}, true))
	if err != nil || len(got) != 3 || r.Entries != pagePart*2+1 {
		t.Errorf("%d pages, %v", len(got), err)
	}
}

// TestConcurrent: many hand over pages at once, and all of them are there.
func TestConcurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	w, err := Create(path, "test")
	if err != nil || w.Begin(testHead) != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				if err := w.Keep([]undo.Page{{Dir: fmt.Sprint(i), Entries: []undo.Former{{Name: fmt.Sprint(j)}}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if is, err := w.Close(); err != nil || is != Whole {
		t.Fatal(is, err)
	}
	r, got, err := read(path)
	if err != nil || r.Entries != 160 || len(got) != 160 {
		t.Errorf("%d pages, %+v, %v", len(got), r, err)
	}
}

// TestNotBegun: a run that began nothing leaves no file.
func TestNotBegun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	w, err := Create(path, "test")
	if err != nil {
		t.Fatal(err)
	}
	if is, err := w.Close(); err != nil || is != Empty {
		t.Fatal(is, err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

// TestCut: a record that is cut off anywhere, or whose rest is zeros, as after a
// loss of power, gives a prefix of its pages and says that it has no end; before
// the end of its head it is damaged.
func TestCut(t *testing.T) {
	pages := testPages(200)
	path := written(t, testHead, pages, true)
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	least := len(pages)
	for _, zeros := range []int{0, 1, 5000} {
		for n := len(magic); n < len(all); n += 1 + n/40 {
			r, err := open(bytes.NewReader(append(bytes.Clone(all[:n]), make([]byte, zeros)...)), int64(n+zeros))
			if err != nil {
				if n > 1000 {
					t.Errorf("cut at %d of %d, %d zeros: %v", n, len(all), zeros, err)
				}
				continue
			}
			i := 0
			for p, err := range r.Pages() {
				if err != nil || !reflect.DeepEqual(p, pages[i]) {
					t.Fatalf("cut at %d: page %d: %v", n, i, err)
				}
				i++
			}
			least = min(least, i)
			if !r.Cut {
				t.Errorf("cut at %d of %d: whole", n, len(all))
			}
		}
	}
	if least != 0 {
		t.Errorf("at least %d pages", least)
	}
}

// TestDamaged: a byte that is changed anywhere is found before the first page is
// given out. In the last two frames, the record is cut off as by a crash.
func TestDamaged(t *testing.T) {
	path := written(t, testHead, testPages(200), true)
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndex(all, all[len(magic):][:tagLen])
	for n := 0; n < len(all); n += 1 + n/200 {
		bad := bytes.Clone(all)
		bad[n] ^= 0x10
		r, err := open(bytes.NewReader(bad), int64(len(bad)))
		switch {
		case n < len(magic) && (errors.Is(err, ErrForeign) || errors.Is(err, ErrNewer)):
		case n >= len(magic) && n < last && errors.Is(err, ErrDamaged):
		case n >= last && err == nil && r.Cut:
		default:
			t.Errorf("byte %d of %d: %v", n, len(all), err)
		}
	}
}

// TestForeign: what is no record, or a newer one's.
func TestForeign(t *testing.T) {
	for text, want := range map[string]error{
		"": ErrForeign, "fastlabel": ErrForeign, strings.Repeat("\x00", 100): ErrForeign, "#!/bin/sh\necho fastlabel record 1\n": ErrForeign,
		"fastlabel record 2\nxxxxxxxx": ErrNewer, magic: ErrDamaged, magic + "x": ErrDamaged,
	} {
		if _, err := open(strings.NewReader(text), int64(len(text))); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, err := read(t.TempDir()); !errors.Is(err, ErrForeign) {
		t.Errorf("a directory: %v", err)
	}
}

// FuzzPages: a payload decodes to what encodes to the same pages, or not at all.
func FuzzPages(f *testing.F) {
	f.Add(appendPages(nil, testPages(2), false))
	f.Add(appendPages(nil, testPages(2), true))
	f.Add([]byte{1, 2, 'l', 0, 1, 'd', 1, 'n', 0, 2, 0})
	f.Add([]byte{1, 2, 'l', 0, 2, '.', '.', 1, 'n', 0, 2, 0})
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, given := range []bool{false, true} {
			var pages, again []undo.Page
			if decodePages(payload, given, func(p undo.Page) bool { pages = append(pages, p); return true }) != nil {
				continue
			}
			for _, p := range pages {
				if !isDir(p.Dir) || len(p.Entries) == 0 {
					t.Fatalf("%q", p.Dir)
				}
				for _, e := range p.Entries {
					if !isName(e.Name) || e.None && e.Label != "" {
						t.Fatalf("%+v", e)
					}
				}
			}
			if err := decodePages(appendPages(nil, pages, given), given, func(p undo.Page) bool { again = append(again, p); return true }); err != nil || !reflect.DeepEqual(pages, again) {
				t.Fatalf("%v\n%+v\n%+v", err, pages, again)
			}
		}
	})
}

// FuzzRecord: a file that begins like a record is read to its end or not at all,
// and what Open has checked Pages gives.
func FuzzRecord(f *testing.F) {
	for _, whole := range []bool{true, false} {
		all, err := os.ReadFile(written(f, testHead, testPages(2), whole))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(all[len(magic):min(len(all), 5000)])
	}
	f.Fuzz(func(t *testing.T, rest []byte) {
		all := append([]byte(magic), rest...)
		r, err := open(bytes.NewReader(all), int64(len(all)))
		if err != nil {
			return
		}
		n := int64(0)
		for p, err := range r.Pages() {
			if err != nil {
				t.Fatal(err)
			}
			n += int64(len(p.Entries))
		}
		if n != r.Entries {
			t.Fatalf("%d entries, and %d", n, r.Entries)
		}
	})
}

// A crafted record makes the reader ask for no more than 64 MiB, whatever its sizes say.
func TestBombs(t *testing.T) {
	labels := append(binary.AppendUvarint(nil, 8<<20), make([]byte, 8<<20)...)
	deep := []byte{1, 0, 0} // a label, a path of 4 MiB, and pages that share it
	deep = append(binary.AppendUvarint(deep, longestDir-2), bytes.Repeat([]byte("abc/"), longestDir/4)[:longestDir-2]...)
	for range 1000 {
		deep = append(deep, 1, 'n', 0, 0, 0)
		deep = append(binary.AppendUvarint(deep, longestDir-2), 0)
	}
	deep = append(deep, 1, 'n', 0, 0, 0)
	entries := []byte{1, 0}
	for range 200 {
		entries = append(entries, 0, 1, 'd')
		entries = binary.AppendUvarint(entries, pageMost)
		entries = append(entries, bytes.Repeat([]byte{'n', 0}, pageMost)...)
		entries = append(entries, make([]byte, 2*pageMost)...)
	}
	for name, c := range map[string]struct {
		payload []byte
		size    int // as the header has it; 0: the payload's
	}{
		"labels": {labels, 0}, "deep": {deep, 0}, "entries": {entries[:min(len(entries), largest)], 0},
		"zeros": {make([]byte, 80<<20), largest}, "size": {[]byte{1, 0}, largest},
	} {
		file := filepath.Join(t.TempDir(), "record")
		w, err := Create(file, "v")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Begin(testHead); err != nil {
			t.Fatal(err)
		}
		zipped := w.zip.EncodeAll(c.payload, nil)
		if err := w.frame(kindPages, zipped, cmp.Or(c.size, len(c.payload))); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := open(bytes.NewReader(text), int64(len(text))); err == nil {
			t.Errorf("%s: no error", name)
		}
		runtime.ReadMemStats(&after)
		if asked := after.TotalAlloc - before.TotalAlloc; asked > 64<<20 {
			t.Errorf("%s: asked for %d MiB", name, asked>>20)
		}
	}
}
