// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
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

func TestParse(t *testing.T) {
	long := string(bytes.Repeat([]byte("n"), 255))
	for _, c := range []struct {
		name string
		ino  uint64
		kind Kind
		is   string
	}{
		{"file", 12, KindFile, "f"},
		{"inode 0", 0, KindFile, "zero"},
		{"largest inode", ^uint64(0), KindDir, "d"},
		{"unknown kind", 3, KindUnknown, "u"},
		{"kind of the future", 3, 200, "u"},
		{"dot", 2, KindDir, "."},
		{"longest", 2, KindLink, long},
		{"longer than any", 2, KindLink, long + long},
		{"odd bytes", 2, KindFile, "\x01\xff\n"},
		{"name to the last byte", 2, KindFile, "1234"},
	} {
		t.Run(c.name, func(t *testing.T) {
			record := encode(c.ino, c.kind, c.is)
			for _, rest := range []string{"", "\x00", "anything else"} {
				buf := append(slices.Clone(record), rest...)
				d, n, err := Parse(buf)
				if err != nil || n != len(record) || d.Ino != c.ino || d.Kind != c.kind || string(d.Name) != c.is {
					t.Fatalf("%+v, %d, %v", d, n, err)
				}
				if d.Name = d.Name[:len(d.Name)+1]; d.Name[len(c.is)] != 0 || cap(d.Name) != len(c.is)+1 {
					t.Errorf("the name does not end in its NUL: %q", d.Name)
				}
			}
			// Cut anywhere, it is no record.
			for cut := range len(record) {
				if d, n, err := Parse(record[:cut:cut]); !errors.Is(err, ErrRecord) || n != 0 {
					t.Fatalf("cut at %d: %+v, %d, %v", cut, d, n, err)
				}
			}
		})
	}
}

func TestParseMalformed(t *testing.T) {
	full := bytes.Repeat([]byte("x"), 64)
	for name, record := range map[string][]byte{
		"nothing":           nil,
		"a byte":            {1},
		"header alone":      encode(1, KindFile, "f")[:header],
		"length 0":          length(encode(1, KindFile, "f"), 0),
		"length of header":  length(encode(1, KindFile, "f"), header),
		"no room for name":  length(encode(1, KindFile, "f"), header+1),
		"length past end":   length(encode(1, KindFile, "f"), 25),
		"length far past":   length(encode(1, KindFile, "f"), 65535),
		"no NUL":            length(slices.Concat(encode(1, KindFile, "f")[:header], full), header+len(full)),
		"NUL past length":   length(encode(1, KindFile, "name"), header+4),
		"empty name":        encode(1, KindFile, ""),
		"slash":             encode(1, KindFile, "a/b"),
		"slash alone":       encode(1, KindFile, "/"),
		"slash at the ends": encode(1, KindDir, "/a/"),
	} {
		if d, n, err := Parse(record); !errors.Is(err, ErrRecord) || n != 0 {
			t.Errorf("%s: %+v, %d, %v", name, d, n, err)
		}
	}
}

func TestIsDot(t *testing.T) {
	for name, want := range map[string]bool{".": true, "..": true, "...": false, "a": false, ".a": false, "a.": false, "..a": false} {
		if IsDot([]byte(name)) != want {
			t.Errorf("%q", name)
		}
	}
}
