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

// Plan gathers a directory range by range of inode numbers, with one reading of
// the directory for each. The first keeps the lowest inode numbers and a histogram
// of the others, from which each later one knows which range will fit.
type Plan struct {
	*Batch         // entries of the range
	from    uint64 // the range: [from, to)
	to      uint64
	weights []uint32 // bytes by bucket, of all entries from from on
	reading int      // of the directory, the first being 1
	full    bool     // the range is down to one bucket and does not fit
}

// Begin returns a plan for a directory of which nothing was read: p, if it has the
// budget, else a new one, for which memory is reserved as by NewBatch.
func (p *Plan) Begin(budget int) *Plan {
	if p == nil || p.budget < budget {
		p = &Plan{Batch: NewBatch(budget)}
	}
	p.Reset()
	p.from, p.to, p.weights, p.reading, p.full = 0, math.MaxUint64, p.weights[:0], 0, false
	return p
}

// Next moves p to the range after the one before, as wide as the histogram says
// that it may be: all, at the first reading, until it does not fit. If the
// directory was read often enough, nothing fits any more.
func (p *Plan) Next() {
	if p.reading++; p.reading > mostReadings {
		p.from, p.full = p.to, true
		return
	}
	if p.reading > 1 {
		p.from, p.to = p.to, math.MaxUint64
		p.narrow(p.budget)
		clear(p.weights)
	}
	p.Reset()
}

// From is the lowest inode number of the range: lower ones were in those before.
func (p *Plan) From() uint64 { return p.from }

// Fits reports whether p can take the rest of the directory range by range. If not,
// all from From on is to be labelled as it lies.
func (p *Plan) Fits() bool { return !p.full }

// More reports whether there is a range after this one.
func (p *Plan) More() bool { return p.to != math.MaxUint64 }

// Add counts directory records of inode numbers from From on, and keeps those of
// the range, which it cuts to what fits. A cut leaves three quarters of the budget, so all
// of them together move each name three times at most.
func (p *Plan) Add(records []byte) error { return each(records, p.add) }

func (p *Plan) add(r sys.Dirent) {
	if p.full || r.Ino < p.from {
		return
	}
	bucket := int(r.Ino >> bucketBits & (1<<(inoShift-bucketBits) - 1))
	if bucket >= len(p.weights) {
		p.weights = append(p.weights, make([]uint32, bucket+1-len(p.weights))...)
	}
	size := uint32(len(r.Name) + perEntry)
	p.weights[bucket] += min(size, math.MaxUint32-p.weights[bucket]) // hard links: there may be more names than inodes
	if r.Ino >= p.to {
		return
	}
	p.put(r)
	if p.Room(0) {
		return
	}
	p.narrow(p.budget / 4 * 3)
	p.prune()
	p.full = !p.Room(0)
}

// narrow ends the range where the budget ends by the histogram, at least one
// bucket on. It changes nothing if all fits.
func (p *Plan) narrow(budget int) {
	sum := uint64(0)
	for i := int(p.from >> bucketBits); i < len(p.weights); i++ {
		if sum += uint64(p.weights[i]); sum > uint64(budget) && uint64(i)<<bucketBits > p.from {
			p.to = uint64(i) << bucketBits
			return
		}
	}
}

// prune drops what lies beyond the range. The index is still in the order of the
// names, which move down in place.
func (p *Plan) prune() {
	kept, end := p.index[:0], 0
	for _, word := range p.index {
		if word>>inoShift >= p.to {
			continue
		}
		at := int(word & atMask)
		n := int(p.names[at]) + 1
		copy(p.names[end:], p.names[at:at+n])
		kept = append(kept, word&^atMask|uint64(end))
		end += n
	}
	p.index, p.names = kept, p.names[:end]
}
