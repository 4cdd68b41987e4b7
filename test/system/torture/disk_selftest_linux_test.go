// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// block is a page that O_DIRECT takes, filled with b.
func block(b byte) []byte {
	buf := make([]byte, 2*page)
	at := int(-uintptr(unsafe.Pointer(&buf[0])) & (page - 1))
	buf = buf[at : at+page : at+page]
	copy(buf, bytes.Repeat([]byte{b}, page))
	return buf
}

// TestDiskLogs proves the stand-in for dm-log-writes: each write to the block
// device, each flush and each write through its cache comes to the log, in
// order. Without the flushes every replay would lose everything, and without
// their order nothing.
func TestDiskLogs(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "fuse")
	for _, direct := range []bool{false, true} {
		image := filepath.Join(treetest.Fresh(t, "tmpfs"), "disk")
		if err := (pages{}).write(image, 1<<20); err != nil {
			t.Fatal(err)
		}
		d, err := startDisk(image)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := d.stop(); err != nil {
				t.Error(err)
			}
		}()
		tell(t, d.file(), direct)
		mark, err := d.mark()
		if err != nil {
			t.Fatal(err)
		}
		log, _, err := readDiskLog(d.log, mark)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := spell(log), "a1 a2 | b3 c4 | d5"; got != want {
			t.Errorf("direct %t: logged %q, want %q", direct, got, want)
		}
	}
}

// tell writes to a loop device over file: two pages, a flush, a page, one
// through the cache, one more.
func tell(t *testing.T, file string, direct bool) {
	t.Helper()
	dev, err := attach(file, direct)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	write := func(flags int, b byte, at int64) {
		fd, err := unix.Open(dev.Name(), unix.O_WRONLY|unix.O_DIRECT|flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if _, err := unix.Pwrite(fd, block(b), at*page); err != nil {
			t.Fatal(err)
		}
	}
	write(0, 'a', 1)
	write(0, 'a', 2)
	if err := dev.Sync(); err != nil {
		t.Fatal(err)
	}
	write(0, 'b', 3)
	write(unix.O_DSYNC, 'c', 4)
	write(0, 'd', 5)
}

// spell writes a log as letters and pages; | is a flush, or several: the loop
// device begins with one of its own, and O_DSYNC asks twice.
func spell(log []piece) string {
	var out []string
	for _, q := range log {
		if !q.flush {
			out = append(out, fmt.Sprintf("%c%d", q.data[0], q.page))
		} else if len(out) > 0 && out[len(out)-1] != "|" {
			out = append(out, "|")
		}
	}
	return strings.Join(out, " ")
}

// TestReplay holds what a cut may lose, and what it must be able to.
func TestReplay(t *testing.T) {
	base := pages{0: block('z')}
	log := logHead{Offset: 0}.pieces(nil, append(block('a'), block('b')...))
	log = append(log, piece{flush: true})
	log = logHead{Offset: page + 512}.pieces(log, block('c')) // the end of one page, the begin of the next
	log = logHead{Offset: 0}.pieces(log, block('d'))

	r := newReplay(base, log)
	for at, want := range [][]string{
		0: {"z"},
		1: {"a", "z"},
		2: {"a", "ab", "z", "zb"},
		3: {"ab"}, // the flush
		4: {"ab", "ac"},
		5: {"ab", "abc", "ac", "acc"},
		6: {"ab", "abc", "ac", "acc", "db", "dbc", "dc", "dcc"},
	} {
		r.to(at)
		rng, seen := rand.New(rand.NewPCG(1, 2)), map[string]bool{}
		for range 500 {
			left, _ := r.cut(rng)
			seen[ends(left)] = true
		}
		var got []string
		for s := range seen {
			got = append(got, s)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("at %d: %q, want %q", at, got, want)
		}
	}
	if base[0][0] != 'z' || len(base) != 1 {
		t.Error("the base was changed")
	}
}

// ends spells pages 0 to 2: the second by its last byte, the third by its
// first, which is where a write across both shows.
func ends(p pages) string {
	var out []byte
	for n, at := range []int{0, page - 1, 0} {
		if data := p[int64(n)]; data != nil {
			out = append(out, data[at])
		}
	}
	return string(out)
}
