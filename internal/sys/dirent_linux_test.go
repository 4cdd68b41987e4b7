// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// encode writes a record as the kernel does, its length padded to 8.
func encode(ino uint64, kind Kind, name string) []byte {
	b := make([]byte, (header+len(name)+1+7)/8*8)
	binary.NativeEndian.PutUint64(b, ino)
	binary.NativeEndian.PutUint64(b[8:], 77) // the position after it, which nobody reads
	binary.NativeEndian.PutUint16(b[16:], uint16(len(b)))
	b[18] = byte(kind)
	copy(b[header:], name)
	return b
}

// length gives the record b another length.
func length(b []byte, n int) []byte {
	binary.NativeEndian.PutUint16(b[16:], uint16(n))
	return b
}

// malformed are records that end what is read of a directory.
var malformed = map[string][]byte{
	"nothing":           nil,
	"a byte":            {1},
	"header alone":      encode(1, KindFile, "f")[:header],
	"length 0":          length(encode(1, KindFile, "f"), 0),
	"length of header":  length(encode(1, KindFile, "f"), header),
	"no room for name":  length(encode(1, KindFile, "f"), header+1),
	"length past end":   length(encode(1, KindFile, "f"), 25),
	"length far past":   length(encode(1, KindFile, "f"), 65535),
	"no NUL":            length(slices.Concat(encode(1, KindFile, "f")[:header], bytes.Repeat([]byte("x"), 64)), header+64),
	"NUL past length":   length(encode(1, KindFile, "name"), header+4),
	"empty name":        encode(1, KindFile, ""),
	"slash":             encode(1, KindFile, "a/b"),
	"slash alone":       encode(1, KindFile, "/"),
	"slash at the ends": encode(1, KindDir, "/a/"),
}

func TestParseMalformed(t *testing.T) {
	for name, record := range malformed {
		if d, n, err := Parse(record); !errors.Is(err, ErrRecord) || n != 0 {
			t.Errorf("%s: %+v, %d, %v", name, d, n, err)
		}
	}
}

// entry is what a record tells.
type entry struct {
	ino  uint64
	kind Kind
	name string
}

// records parses as the walk does, but for the two dots, which it keeps.
func records(t *testing.T, buf []byte) (list []entry) {
	for len(buf) > 0 {
		d, n, err := Parse(buf)
		switch {
		case err != nil && (n != 0 || d.Name != nil || !errors.Is(err, ErrRecord)):
			t.Fatalf("%v, and %d bytes of %+v", err, n, d)
		case err != nil:
			return list
		case n < header+2 || n > len(buf):
			t.Fatalf("a record of %d bytes in %d", n, len(buf))
		}
		// Name and NUL lie in the record, and nobody can append to them.
		if end := header + len(d.Name) + 1; end > n || cap(d.Name) != len(d.Name)+1 || &d.Name[0] != &buf[header] || buf[end-1] != 0 || d.Cname() != &buf[header] {
			t.Fatalf("the name %q, with room for %d, is not at its place in %d bytes", d.Name, cap(d.Name), n)
		}
		list = append(list, entry{d.Ino, d.Kind, string(d.Name)})
		buf = buf[n:]
	}
	return list
}

// build writes a record for each line of names, as the kernel does: it does
// not clear the bytes behind a name's NUL.
func build(names string, salt uint64) (buf []byte, want []entry) {
	for line := range strings.SplitSeq(names, "\n") {
		if line == "" || len(line) > 4096 || strings.ContainsAny(line, "/\x00") {
			continue
		}
		salt = salt*6364136223846793005 + 1442695040888963407 // Knuth's, MMIX
		e := entry{salt, Kind(salt >> 56), line}
		if salt>>40%8 == 0 {
			e.ino = 0
		}
		record := encode(e.ino, e.kind, e.name)
		for i := header + len(line) + 1; i < len(record); i++ {
			record[i] = "/x\x00."[salt>>i%4]
		}
		buf, want = append(buf, record...), append(want, e)
	}
	return buf, want
}

// FuzzDirents: what was put into records comes out of them, in order; behind them, any bytes
// at all are names or an error; and whatever is beyond the buffer is not looked at. Each buffer
// ends where its page does, before one that cannot be read.
func FuzzDirents(f *testing.F) {
	f.Add("", uint64(0), []byte{})
	f.Add("f", uint64(1), encode(1, KindFile, "f"))
	f.Add(".\n..\n...\nname", uint64(2), slices.Concat(encode(0, KindUnknown, "."), encode(2, KindDir, ".."), []byte{1, 2, 3}))
	f.Add(strings.Repeat("n", 255)+"\n1234\n12345\n\xff\x01", uint64(3), encode(1, KindDir, "a/b"))
	for _, record := range malformed {
		f.Add("a", uint64(4), record)
	}
	f.Add("a", uint64(6), length(encode(1, KindFile, "ab"), header+3)[:22]) // no padding
	for record := encode(^uint64(0), 200, "name"); len(record) > 0; {       // cut anywhere
		record = record[:len(record)-1]
		f.Add("a", uint64(5), record)
	}

	const room = 1 << 20
	page := os.Getpagesize()
	area, err := unix.Mmap(-1, 0, room+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	treetest.Must(f, err)
	f.Cleanup(func() {
		treetest.Check(f, unix.Munmap(area))
	})
	treetest.Must(f, unix.Mprotect(area[room:], unix.PROT_NONE))

	f.Fuzz(func(t *testing.T, names string, salt uint64, rest []byte) {
		made, want := build(names, salt)
		if len(made)+len(rest) > room {
			return
		}
		buf := area[room-len(made)-len(rest) : room]
		copy(buf[copy(buf, made):], rest)

		got := records(t, buf)
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) || len(rest) == 0 && len(got) > len(want) {
			t.Fatalf("%q\n got %+v\nwant %+v", buf, got, want)
		}
		for _, e := range got {
			if IsDot([]byte(e.name)) != (e.name == "." || e.name == "..") || e.name == "" || strings.ContainsAny(e.name, "/\x00") {
				t.Fatalf("%q is no name, or taken for a dot", e.name)
			}
		}
	})
}
