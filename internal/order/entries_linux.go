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
	// bucketBits: the histogram counts by 16,384 inode numbers.
	bucketBits = 14
	// mostReadings bounds how often a directory is read, which makes the time for
	// it linear: 32 readings of a million names take about as long as writing
	// their labels in order saves.
	mostReadings = 32

	// An index word is an inode number, a kind, and where in names its name is.
	atMask    = 1<<kindShift - 1
	kindShift = 28
	kindMask  = 1<<(inoShift-kindShift) - 1
	inoShift  = 32 // ext4's inode numbers have 32 bits

	perEntry = 8 + 1 // a word of the index, and the length of the name
)

// Entries are those of one directory: all of them or, of a directory that does not fit,
// those of a range of inode numbers. Such a directory is read once for each range. The first
// reading takes the lowest inode numbers and a histogram of the others, from which each later
// one knows which range will fit.
type Entries struct {
	budget  int
	names   []byte // each behind its length
	index   []uint64
	pending atomic.Int32 // ranges that are not done

	from    uint64 // of the inode numbers: [from, to)
	to      uint64
	weights []uint32 // bytes by bucket, of all entries from from on
	reading int      // of the directory, the first being 1
	full    bool     // from and to are one bucket apart, and it does not fit
}

// Begin empties e, if it has the budget, in bytes, or returns new ones, which reserve memory
// for all of it. Untouched pages cost nothing; what grew step by step would take three times
// as much. The shortest name has one byte.
func (e *Entries) Begin(budget int) *Entries {
	if e == nil || e.budget < budget {
		e = &Entries{budget: budget, names: make([]byte, 0, budget+sys.RecordMax), index: make([]uint64, 0, budget/(perEntry+1)+1)}
	}
	e.names, e.index = e.names[:0], e.index[:0]
	e.from, e.to, e.weights, e.reading, e.full = 0, math.MaxUint64, e.weights[:0], 0, false
	return e
}

// Put adds what is in a buffer of getdents64, but for . and .. . An entry takes less of the
// budget than it takes there.
func (e *Entries) Put(buf []byte) error { return each(buf, e.put) }

// Room reports whether n bytes more fit.
func (e *Entries) Room(n int) bool { return e.size()+n <= e.budget }

// size returns the used part of the budget. It exceeds the budget by one name at most,
// which limits the offsets to far below atMask.
func (e *Entries) size() int { return len(e.names) + 8*len(e.index) }

// InOrder reports whether the entries were put in the order of inode numbers.
func (e *Entries) InOrder() bool { return slices.IsSorted(e.index) }

// each calls f for the entries in buf, but for . and .. . A name that is longer
// than names are is an error: its length would not fit.
func each(buf []byte, f func(sys.Dirent)) error {
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
			f(r)
		}
	}
	return nil
}

func (e *Entries) put(r sys.Dirent) {
	word := r.Ino<<inoShift | uint64(r.Kind&kindMask)<<kindShift | uint64(len(e.names))
	e.names = append(append(e.names, byte(len(r.Name))), r.Name...)
	e.index = append(e.index, word)
}

// Next moves e to the inode numbers after those before, as many as fit by the histogram: all,
// at the first reading, until they do not fit. If the directory was read often enough, nothing
// fits any more.
func (e *Entries) Next() {
	if e.reading++; e.reading > mostReadings {
		e.from, e.full = e.to, true
		return
	}
	if e.reading > 1 {
		e.from, e.to = e.to, math.MaxUint64
		e.narrow(e.budget)
		clear(e.weights)
	}
	e.names, e.index = e.names[:0], e.index[:0]
}

// From is the lowest inode number of the range: lower ones were in those before.
func (e *Entries) From() uint64 { return e.from }

// Fits reports whether e can take the rest of the directory range by range. If not,
// all from From on is to be labelled as it lies.
func (e *Entries) Fits() bool { return !e.full }

// More reports whether there is a range after this one.
func (e *Entries) More() bool { return e.to != math.MaxUint64 }

// Add counts what is in a buffer of getdents64 from From on, and adds what is in
// the range, which it cuts to what fits. A cut leaves three quarters of the budget, so all
// of them together move each name three times at most.
func (e *Entries) Add(buf []byte) error { return each(buf, e.add) }

func (e *Entries) add(r sys.Dirent) {
	if e.full || r.Ino < e.from {
		return
	}
	bucket := int(r.Ino >> bucketBits & (1<<(inoShift-bucketBits) - 1))
	if bucket >= len(e.weights) {
		e.weights = append(e.weights, make([]uint32, bucket+1-len(e.weights))...)
	}
	size := uint32(len(r.Name) + perEntry)
	e.weights[bucket] += min(size, math.MaxUint32-e.weights[bucket]) // hard links: there may be more names than inodes
	if r.Ino >= e.to {
		return
	}
	if e.put(r); e.Room(0) {
		return
	}
	e.narrow(e.budget / 4 * 3)
	e.prune()
	e.full = !e.Room(0)
}

// narrow ends the range where the budget ends by the histogram, at least one
// bucket on. It changes nothing if all fits.
func (e *Entries) narrow(budget int) {
	sum := uint64(0)
	for i := int(e.from >> bucketBits); i < len(e.weights); i++ {
		if sum += uint64(e.weights[i]); sum > uint64(budget) && uint64(i)<<bucketBits > e.from {
			e.to = uint64(i) << bucketBits
			return
		}
	}
}

// prune drops what lies beyond the range. The index is still in the order of the
// names, which move down in place.
func (e *Entries) prune() {
	index, end := e.index[:0], 0
	for _, word := range e.index {
		if word>>inoShift >= e.to {
			continue
		}
		at := int(word & atMask)
		n := int(e.names[at]) + 1
		copy(e.names[end:], e.names[at:at+n])
		index = append(index, word&^atMask|uint64(end))
		end += n
	}
	e.index, e.names = index, e.names[:end]
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
// another reading. The other workers may have nothing to do until then, so it must
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
