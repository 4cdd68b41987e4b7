// SPDX-License-Identifier: Apache-2.0

package order

import (
	"math"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

const (
	// bucketBits: the histogram counts by 16,384 inode numbers.
	bucketBits = 14

	// mostReadings bounds how often a directory is read, which makes the time for
	// it linear: 32 readings of a million names take about as long as writing
	// their labels in order saves.
	mostReadings = 32
)

// A directory that does not fit is gathered range by range of inode numbers, with one
// reading of the directory for each. The first keeps the lowest inode numbers and a
// histogram of the others, from which each later one knows which range will fit.

// Next moves b to the range after the one before, as wide as the histogram says
// that it may be: all, at the first reading, until it does not fit. If the
// directory was read often enough, nothing fits any more.
func (b *Batch) Next() {
	if b.reading++; b.reading > mostReadings {
		b.from, b.full = b.to, true
		return
	}
	if b.reading > 1 {
		b.from, b.to = b.to, math.MaxUint64
		b.narrow(b.budget)
		clear(b.weights)
	}
	b.reset()
}

// From is the lowest inode number of the range: lower ones were in those before.
func (b *Batch) From() uint64 { return b.from }

// Fits reports whether b can take the rest of the directory range by range. If not,
// all from From on is to be labelled as it lies.
func (b *Batch) Fits() bool { return !b.full }

// More reports whether there is a range after this one.
func (b *Batch) More() bool { return b.to != math.MaxUint64 }

// Add counts directory records of inode numbers from From on, and keeps those of
// the range, which it cuts to what fits. A cut leaves three quarters of the budget, so all
// of them together move each name three times at most.
func (b *Batch) Add(records []byte) error { return each(records, b.add) }

func (b *Batch) add(r sys.Dirent) {
	if b.full || r.Ino < b.from {
		return
	}
	bucket := int(r.Ino >> bucketBits & (1<<(inoShift-bucketBits) - 1))
	if bucket >= len(b.weights) {
		b.weights = append(b.weights, make([]uint32, bucket+1-len(b.weights))...)
	}
	size := uint32(len(r.Name) + perEntry)
	b.weights[bucket] += min(size, math.MaxUint32-b.weights[bucket]) // hard links: there may be more names than inodes
	if r.Ino >= b.to {
		return
	}
	b.put(r)
	if b.Room(0) {
		return
	}
	b.narrow(b.budget / 4 * 3)
	b.prune()
	b.full = !b.Room(0)
}

// narrow ends the range where the budget ends by the histogram, at least one
// bucket on. It changes nothing if all fits.
func (b *Batch) narrow(budget int) {
	sum := uint64(0)
	for i := int(b.from >> bucketBits); i < len(b.weights); i++ {
		if sum += uint64(b.weights[i]); sum > uint64(budget) && uint64(i)<<bucketBits > b.from {
			b.to = uint64(i) << bucketBits
			return
		}
	}
}

// prune drops what lies beyond the range. The index is still in the order of the
// names, which move down in place.
func (b *Batch) prune() {
	kept, end := b.index[:0], 0
	for _, word := range b.index {
		if word>>inoShift >= b.to {
			continue
		}
		at := int(word & atMask)
		n := int(b.names[at]) + 1
		copy(b.names[end:], b.names[at:at+n])
		kept = append(kept, word&^atMask|uint64(end))
		end += n
	}
	b.index, b.names = kept, b.names[:end]
}
