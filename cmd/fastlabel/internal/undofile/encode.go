// SPDX-License-Identifier: Apache-2.0

package undofile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"unsafe"

	"github.com/fastlabel/fastlabel/relabel/undo"
)

// appendPages encodes pages:
//
//	uvarint    how many labels; each: 0 for none at all, else 1 + its length, and it
//	pages, to the end; each:
//	  uvarint  bytes that its path shares with the one before
//	  uvarint  length of the rest, and the rest
//	  uvarint  how many entries
//	  names    each with a NUL
//	  varint   inode numbers, each less the one before
//	  uvarint  number of its label, for each
//	  uvarint  number of the label that it is given, for each, if that is on record
func appendPages(buf []byte, pages []undo.Page, given bool) []byte {
	type key struct {
		label string
		none  bool
	}
	ids := map[key]uint64{}
	var labels []key
	var last key
	lastID, begun := uint64(0), false
	id := func(k key) uint64 {
		if begun && k == last {
			return lastID
		}
		n, known := ids[k]
		if !known {
			n = uint64(len(labels))
			ids[k] = n
			labels = append(labels, k)
		}
		last, lastID, begun = k, n, true
		return n
	}
	var body []byte
	dir := ""
	for _, p := range pages {
		shared := 0
		for shared < min(len(dir), len(p.Dir)) && dir[shared] == p.Dir[shared] {
			shared++
		}
		dir = p.Dir
		body = binary.AppendUvarint(body, uint64(shared))
		body = binary.AppendUvarint(body, uint64(len(dir)-shared))
		body = append(body, dir[shared:]...)
		body = binary.AppendUvarint(body, uint64(len(p.Entries)))
		for _, e := range p.Entries {
			body = append(append(body, e.Name...), 0)
		}
		ino := uint64(0)
		for _, e := range p.Entries {
			body = binary.AppendVarint(body, int64(e.Ino-ino))
			ino = e.Ino
		}
		for _, e := range p.Entries {
			body = binary.AppendUvarint(body, id(key{e.Label, e.None}))
		}
		for i := 0; given && i < len(p.Entries); i++ {
			body = binary.AppendUvarint(body, id(key{p.Entries[i].Given, false}))
		}
	}
	buf = binary.AppendUvarint(buf, uint64(len(labels)))
	for _, l := range labels {
		if l.none {
			buf = append(buf, 0)
			continue
		}
		buf = binary.AppendUvarint(buf, 1+uint64(len(l.label)))
		buf = append(buf, l.label...)
	}
	return append(buf, body...)
}

var errForm = errors.New("its contents are not in order")

// decoder takes a payload apart; the first fault ends it.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) fail() uint64 {
	d.bad, d.rest = true, nil
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		return d.fail()
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		return int64(d.fail())
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

const (
	longest    = 64 << 10 // of labels: the longest attribute (XATTR_SIZE_MAX)
	longestDir = 4 << 20  // of directories' paths
	pageMost   = 64 << 10 // entries
	pagePart   = 8 << 10  // of them are written as one
	labelsMost = 128 << 10
	// askedMost bounds the memory that the pages of a frame take: 4 MiB of names and
	// paths, and entries of at least 9 bytes by the writer's measure.
	askedMost = 48 << 20
)

// parts has no page with more entries than pagePart.
func parts(pages []undo.Page) []undo.Page {
	var out []undo.Page
	for _, p := range pages {
		for part := range slices.Chunk(p.Entries, pagePart) {
			out = append(out, undo.Page{Dir: p.Dir, Entries: part})
		}
	}
	return out
}

// decodePages is the way back. It yields no page that a filesystem could not hold:
// no name leads out of its directory.
func decodePages(payload []byte, given bool, yield func(undo.Page) bool) error {
	d := &decoder{rest: payload}
	count := d.uvarint()
	if count > uint64(len(d.rest)) || count > labelsMost {
		return errForm
	}
	labels := make([]undo.Former, count)
	for i := range labels {
		n := d.uvarint()
		if n == 0 {
			labels[i].None = true
			continue
		}
		if n-1 > longest {
			return errForm
		}
		labels[i].Label = string(d.bytes(n - 1))
	}
	dir, asked := "", 0
	for !d.bad && len(d.rest) > 0 {
		shared, more := d.uvarint(), d.uvarint()
		rest := d.bytes(more)
		if d.bad || shared > uint64(len(dir)) || shared+more > longestDir {
			return errForm
		}
		asked += int(shared + more)
		if asked > askedMost {
			return errForm
		}
		dir = dir[:shared] + string(rest)
		n := d.uvarint()
		if !isDir(dir) || n == 0 || n > pageMost || n > uint64(len(d.rest)) {
			return errForm
		}
		if asked += int(n) * int(unsafe.Sizeof(undo.Former{})); asked > askedMost {
			return errForm
		}
		p := undo.Page{Dir: dir, Entries: make([]undo.Former, n)}
		if !d.entries(p.Entries, labels, given) {
			return errForm
		}
		if !yield(p) {
			return nil
		}
	}
	if d.bad {
		return errForm
	}
	return nil
}

func (d *decoder) entries(entries, labels []undo.Former, given bool) bool {
	for i := range entries {
		end := bytes.IndexByte(d.rest, 0)
		if end < 0 || !isName(string(d.rest[:end])) {
			return false
		}
		entries[i].Name = string(d.bytes(uint64(end)))
		d.bytes(1)
	}
	ino := uint64(0)
	for i := range entries {
		ino += uint64(d.varint())
		entries[i].Ino = ino
	}
	for i := range entries {
		id := d.uvarint()
		if d.bad || id >= uint64(len(labels)) {
			return false
		}
		entries[i].Label, entries[i].None = labels[id].Label, labels[id].None
	}
	for i := 0; given && i < len(entries); i++ {
		id := d.uvarint()
		if d.bad || id >= uint64(len(labels)) {
			return false
		}
		entries[i].Given = labels[id].Label
	}
	return true
}

// isName says that a directory could hold the name.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 1024 && !strings.ContainsAny(name, "/\x00")
}

// isDir says that a path leads down, name by name.
func isDir(dir string) bool {
	if dir == "" {
		return true
	}
	for name := range strings.SplitSeq(dir, "/") {
		if !isName(name) {
			return false
		}
	}
	return true
}
