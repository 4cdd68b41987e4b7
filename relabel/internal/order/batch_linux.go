// SPDX-License-Identifier: Apache-2.0

package order

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

const (
	// sliceLen is how many entries of a batch are one piece of work.
	sliceLen = 2048
	// digit is how many bits of the inode number are sorted by first.
	digit = 11

	// An index word is an inode number, a kind, and where in names its name is.
	atMask    = 1<<kindShift - 1
	kindShift = 28
	kindMask  = 1<<(inoShift-kindShift) - 1
	inoShift  = 32 // ext4's inode numbers have 32 bits

	perEntry = 8 + 1 // a word of the index, and the length of the name
)

// Batch is entries of one directory: all of them or, of a directory that is read several
// times, those of a range of inode numbers.
type Batch struct {
	budget  int
	names   []byte // each behind its length
	index   []uint64
	pending atomic.Int32 // slices that are not done

	from    uint64 // the range: [from, to)
	to      uint64
	weights []uint32 // bytes by bucket, of all entries from from on
	reading int      // of the directory, the first being 1
	full    bool     // the range is down to one bucket and does not fit
}

// Begin returns an empty batch: b, if it has the budget, in bytes, else a new one, which
// reserves memory for all of the budget. Untouched pages cost nothing; a batch that grew
// step by step would be held three times over. The shortest name has one byte.
func (b *Batch) Begin(budget int) *Batch {
	if b == nil || b.budget < budget {
		b = &Batch{budget: budget, names: make([]byte, 0, budget+sys.RecordMax), index: make([]uint64, 0, budget/(perEntry+1)+1)}
	}
	b.reset()
	b.from, b.to, b.weights, b.reading, b.full = 0, math.MaxUint64, b.weights[:0], 0, false
	return b
}

func (b *Batch) reset() { b.names, b.index = b.names[:0], b.index[:0] }

// Put adds directory records, but for . and .. . An entry takes less of the budget
// than its record is long.
func (b *Batch) Put(records []byte) error { return each(records, b.put) }

// Room reports whether n bytes of records fit.
func (b *Batch) Room(n int) bool { return b.size()+n <= b.budget }

// InOrder reports whether the entries were put in the order of inode numbers.
func (b *Batch) InOrder() bool { return slices.IsSorted(b.index) }

// each calls f for the entries in records, but for . and .. . A name that is longer
// than names are is an error: its length would not fit.
func each(records []byte, f func(sys.Dirent)) error {
	for len(records) > 0 {
		r, length, err := sys.Parse(records)
		if err != nil {
			return err
		}
		if len(r.Name) > math.MaxUint8 {
			return sys.ErrRecord
		}
		records = records[length:]
		if !sys.IsDot(r.Name) {
			f(r)
		}
	}
	return nil
}

func (b *Batch) put(r sys.Dirent) {
	word := r.Ino<<inoShift | uint64(r.Kind&kindMask)<<kindShift | uint64(len(b.names))
	b.names = append(append(b.names, byte(len(r.Name))), r.Name...)
	b.index = append(b.index, word)
}

// size is how much of the budget is used. It exceeds the budget by one name at most,
// which keeps the offsets far below atMask.
func (b *Batch) size() int { return len(b.names) + 8*len(b.index) }

// Slice is a part of a sorted batch, for one goroutine.
type Slice struct {
	batch    *Batch
	from, to int
}

// Sort puts b in the order of inode numbers, and says how many slices it has. All
// of them must be Done before b is changed.
func (b *Batch) Sort() int {
	b.sort()
	count := (len(b.index) + sliceLen - 1) / sliceLen
	b.pending.Store(int32(count))
	return count
}

// Slice is slice i of those that Sort counted.
func (b *Batch) Slice(i int) Slice {
	return Slice{b, i * sliceLen, min((i+1)*sliceLen, len(b.index))}
}

// Next writes records of the next entries of s into buf, which has room for
// sys.RecordMax at least. After the last it gives none.
func (s *Slice) Next(buf []byte) []byte {
	b, words := s.batch, s.batch.index[s.from:s.to]
	// A loop of its own: the processor fetches many names at once.
	for i, size := 0, 0; i < len(words); i++ {
		if size += sys.RecordLen(int(b.names[words[i]&atMask])); size > cap(buf) {
			words = words[:i]
		}
	}
	s.from += len(words)
	buf = buf[:0]
	for _, word := range words {
		name := b.names[word&atMask:]
		buf = sys.AppendRecord(buf, word>>inoShift, sys.Kind(word>>kindShift&kindMask), name[1:1+int(name[0])])
	}
	return buf
}

// Done gives s back, and says true for the last slice of its batch.
func (s *Slice) Done() bool { return s.batch.pending.Add(-1) == 0 }

// sort sorts the index in place: memory for a second index would be names left for
// another reading. The other workers may have nothing to do until then, so it must
// not take long: the words go to one of 2,048 bins each, and each bin,
// which fits into the processor's cache, is sorted.
func (b *Batch) sort() {
	words := b.index
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
