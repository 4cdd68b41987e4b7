// SPDX-License-Identifier: Apache-2.0

package order

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/internal/sys"
)

const (
	// rangeLen sorted entries are one item of work.
	rangeLen = 2048
	// digit is the bits of the inode number that are sorted by first.
	digit = 11

	// An index word is an inode number, a kind, and where in names its name is.
	atMask    = 1<<kindShift - 1
	kindShift = 28
	kindMask  = 1<<(inoShift-kindShift) - 1
	inoShift  = 32 // ext4's inode numbers have 32 bits
)

// Entries are those of one directory, or of a part of it.
type Entries struct {
	budget  int
	names   []byte // each behind its length
	index   []uint64
	pending atomic.Int32 // ranges that are not done
}

// Begin empties e, if it has the budget, in bytes, or returns new ones, which reserve memory
// for all of it. Untouched pages cost nothing; what grew step by step would take three times
// as much. The least entry has a word, a length and a byte.
func (e *Entries) Begin(budget int) *Entries {
	if e == nil || e.budget < budget {
		e = &Entries{budget: budget, names: make([]byte, 0, budget), index: make([]uint64, 0, budget/(8+1+1))}
	}
	e.names, e.index = e.names[:0], e.index[:0]
	return e
}

// Room reports whether n bytes of a buffer of getdents64 fit, in which an entry takes more than
// here. The budget limits the offsets to far below atMask.
func (e *Entries) Room(n int) bool { return len(e.names)+8*len(e.index)+n <= e.budget }

// InOrder reports whether the entries were put in the order of inode numbers.
func (e *Entries) InOrder() bool { return slices.IsSorted(e.index) }

// Put adds what is in a buffer of getdents64, but for . and .. . A name that is longer than
// names are is an error: its length would not fit.
func (e *Entries) Put(buf []byte) error {
	for len(buf) > 0 {
		r, length, err := sys.Parse(buf)
		if err != nil {
			return err
		}
		if len(r.Name) > math.MaxUint8 {
			return sys.ErrRecord
		}
		buf = buf[length:]
		if !sys.IsDot(r.Name) {
			e.index = append(e.index, r.Ino<<inoShift|uint64(r.Kind&kindMask)<<kindShift|uint64(len(e.names)))
			e.names = append(append(e.names, byte(len(r.Name))), r.Name...)
		}
	}
	return nil
}

// Middle is the position in the middle of an indexed directory of ext4, which lists its names by
// their hashes: the position is the hash. Without an index, none is as high. A reading may begin at any
// position, and continues with the next name; names of one hash have one position.
const Middle = 1 << 62

// Before returns what lies before the position to of a buffer of getdents64, whose first entry does,
// and whether it was cut there.
func Before(buf []byte, to int64) ([]byte, bool) {
	for at := 0; at < len(buf); {
		_, length, err := sys.Parse(buf[at:])
		if err != nil {
			break // Put reports it
		}
		if next := sys.After(buf[at:]); next >= to {
			return buf[:at+length], true
		}
		at += length
	}
	return buf, false
}

// Range is a part of sorted Entries, for one goroutine.
type Range struct {
	of       *Entries
	from, to int
}

// Sort puts e in the order of inode numbers, and says how many ranges it has. All
// of them must be Done before e is changed.
func (e *Entries) Sort() int {
	e.sort()
	count := (len(e.index) + rangeLen - 1) / rangeLen
	e.pending.Store(int32(count))
	return count
}

// Range is range i of those that Sort counted.
func (e *Entries) Range(i int) Range {
	return Range{e, i * rangeLen, min((i+1)*rangeLen, len(e.index))}
}

// Next writes the next entries of s into buf, as getdents64 does. buf has room for
// sys.RecordMax at least. After the last there are none.
func (s *Range) Next(buf []byte) []byte {
	e, words := s.of, s.of.index[s.from:s.to]
	// A loop of its own: the processor fetches many names at once.
	for i, size := 0, 0; i < len(words); i++ {
		if size += sys.RecordLen(int(e.names[words[i]&atMask])); size > cap(buf) {
			words = words[:i]
		}
	}
	s.from += len(words)
	buf = buf[:0]
	for _, word := range words {
		name := e.names[word&atMask:]
		buf = sys.AppendRecord(buf, word>>inoShift, sys.Kind(word>>kindShift&kindMask), name[1:1+int(name[0])])
	}
	return buf
}

// Done ends s, and reports whether all others have ended.
func (s *Range) Done() bool { return s.of.pending.Add(-1) == 0 }

// sort sorts the index in place: memory for a second index would be names left for
// another part. The other workers may have nothing to do until then, so it must
// not take long: the words go to one of 2,048 bins each, and each bin,
// which fits into the processor's cache, is sorted.
func (e *Entries) sort() {
	words := e.index
	if len(words) < 2<<digit || slices.IsSorted(words) {
		slices.Sort(words)
		return
	}
	least, most := slices.Min(words)>>inoShift, slices.Max(words)>>inoShift
	shift := inoShift + max(0, bits.Len64(most-least)-digit)
	bin := func(word uint64) int { return int((word - least<<inoShift) >> shift) }
	var next, ends [1 << digit]int
	for _, w := range words {
		ends[bin(w)]++
	}
	at := 0
	for i, n := range ends {
		next[i] = at
		at += n
		ends[i] = at
	}
	begin := 0
	for i, end := range ends {
		for next[i] < end {
			w := words[next[i]]
			for to := bin(w); to != i; to = bin(w) {
				words[next[to]], w = w, words[next[to]]
				next[to]++
			}
			words[next[i]] = w
			next[i]++
		}
		slices.Sort(words[begin:end])
		begin = end
	}
}
