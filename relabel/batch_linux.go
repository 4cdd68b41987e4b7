// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

const (
	// digit is how many bits of the inode number are sorted by first.
	digit = 11
	// bucketBits: the histogram counts by 16,384 inode numbers.
	bucketBits = 14

	atBits  = 30 // of an index word: where in names
	dirBit  = 1 << atBits
	maybe   = 1 << (atBits + 1) // its kind is unknown
	atMask  = dirBit - 1
	inoBits = 32 // ext4's inode numbers; they are the upper half

	// mostReadings bounds how often a directory is read, which makes the time for
	// it linear: 32 readings of a million names take about as long as writing
	// their labels in order saves.
	mostReadings = 32
)

// batch is a range of a directory's entries, by inode number.
type batch struct {
	dir     *dir
	start   int64    // position of the first record
	from    uint64   // the range gathered: [from, to)
	to      uint64   //
	more    bool     // there are entries beyond
	weights []uint32 // bytes by bucket, of all entries from from on
	reading int      // of the directory, the first being 1
	names   []byte   // each with its NUL
	index   []uint64 // inode number, flags, and where in names
	window  bool     // see window_linux.go: from, to, more and weights say nothing
	pending atomic.Int32
}

// newBatch has room for all of the budget, of which what is not used is not there:
// memory that grows step by step would be held three times over. The least entry
// has a name of one byte.
func newBatch(budget int) *batch {
	most := budget/(8+2) + 1
	return &batch{names: make([]byte, 0, budget+sys.RecordMax), index: make([]uint64, 0, most)}
}

// sort puts the index in the order of inode numbers, in its place: memory for a
// second index would be names left for another reading. Nobody else has anything
// to do meanwhile, so it had better not take long: the words go to one of 2,048
// stretches each, and each stretch, which is in the processor's cache, is sorted.
func (b *batch) sort() {
	words := b.index
	if slices.IsSorted(words) {
		return
	}
	least, most := slices.Min(words)>>inoBits, slices.Max(words)>>inoBits
	shift := inoBits + max(0, bits.Len64(most-least)-digit)
	stretch := func(word uint64) int { return int((word - least<<inoBits) >> shift) }
	var next, ends [1 << digit]int
	for _, w := range words {
		ends[stretch(w)]++
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
			for to := stretch(w); to != i; to = stretch(w) {
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

// reset readies b for the first reading of d from start on: everything, until it
// does not fit.
func (b *batch) reset(d *dir, start int64) {
	b.dir, b.start, b.from, b.to, b.weights, b.reading = d, start, 0, math.MaxUint64, b.weights[:0], 0
}

// plan moves b to the range after the one before, as wide as the histogram
// says that it may be, and empties the histogram of what lies beyond it. It
// says no if the directory was read often enough.
func (b *batch) plan(budget int) bool {
	if b.reading++; b.reading > mostReadings {
		b.from = b.to
		return false
	}
	if b.reading > 1 {
		b.from, b.to = b.to, math.MaxUint64
		b.narrow(budget)
		clear(b.weights)
	}
	b.names, b.index = b.names[:0], b.index[:0]
	return true
}

// narrow sets b.to to where the budget ends by the histogram, at least one
// bucket on; it says nothing if all fits.
func (b *batch) narrow(budget int) {
	sum := uint64(0)
	for i := int(b.from >> bucketBits); i < len(b.weights); i++ {
		if sum += uint64(b.weights[i]); sum > uint64(budget) && uint64(i)<<bucketBits > b.from {
			b.to = uint64(i) << bucketBits
			return
		}
	}
}

// add notes one record, of the range or beyond it, and keeps it if it is in range.
// It says no if the range is down to one bucket and does not fit. Each prune but the
// last halves what was kept, so all of them together move each name about twice.
func (b *batch) add(r sys.Dirent, budget int) bool {
	bucket := int(r.Ino >> bucketBits & (1<<(inoBits-bucketBits) - 1))
	if bucket >= len(b.weights) {
		b.weights = append(b.weights, make([]uint32, bucket+1-len(b.weights))...)
	}
	size := uint32(len(r.Name) + 1 + 8)
	b.weights[bucket] += min(size, math.MaxUint32-b.weights[bucket]) // hard links: there may be more names than inodes
	if r.Ino >= b.to {
		return true
	}
	b.put(r)
	if b.size() <= budget {
		return true
	}
	b.narrow(budget / 2)
	b.prune()
	return b.size() <= budget
}

// size is how much of the budget is used. It never exceeds the budget by more than
// one name, which keeps the offsets far below atMask.
func (b *batch) size() int { return len(b.names) + 8*len(b.index) }

// put keeps one record.
func (b *batch) put(r sys.Dirent) {
	word := r.Ino<<inoBits | uint64(len(b.names))
	switch r.Kind {
	case sys.KindDir:
		word |= dirBit
	case sys.KindUnknown:
		word |= maybe
	}
	b.names = append(b.names, r.Name[:len(r.Name)+1]...)
	b.index = append(b.index, word)
}

// prune drops what lies beyond b.to. The index is still in the order of the
// names, which move down in place.
func (b *batch) prune() {
	kept, end := b.index[:0], 0
	for _, word := range b.index {
		if word>>inoBits >= b.to {
			continue
		}
		at := int(word & atMask)
		n := bytes.IndexByte(b.names[at:], 0) + 1
		copy(b.names[end:], b.names[at:at+n])
		kept = append(kept, word&^atMask|uint64(end))
		end += n
	}
	b.index, b.names = kept, b.names[:end]
}

// entry is the directory record behind a word of the index.
func (b *batch) entry(word uint64) sys.Dirent {
	name := b.names[word&atMask:]
	e := sys.Dirent{Ino: word >> inoBits, Kind: sys.KindFile, Name: name[:bytes.IndexByte(name, 0)]}
	switch {
	case word&dirBit != 0:
		e.Kind = sys.KindDir
	case word&maybe != 0:
		e.Kind = sys.KindUnknown
	}
	return e
}

// dropBelow moves the records of inode numbers from least on to the front of the
// buffer and gives what is left.
func dropBelow(records []byte, least uint64) []byte {
	kept := records[:0]
	for len(records) > 0 {
		r, length, err := sys.Parse(records)
		if err != nil {
			return append(kept, records...) // records tells
		}
		if r.Ino >= least {
			kept = append(kept, records[:length]...)
		}
		records = records[length:]
	}
	return kept
}
