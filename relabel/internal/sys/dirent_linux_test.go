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
