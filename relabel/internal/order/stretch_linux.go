// SPDX-License-Identifier: Apache-2.0

package order

import (
	"math"
	"sync"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// mostStretches of a directory. Of the last 32 KiB that are read of each, half lie beyond
// it on average: with eight, 0.2 % of a million names of 32 bytes.
const mostStretches = 8

// Stretch is a part of a directory: the names at positions from From up to To, and
// without To. An indexed directory of ext4 lists its names by their hashes, and the hash
// is the position, so stretches of one length have as many names each. A reading may
// begin at any position, not only at one that the kernel gave: it continues with the next
// name. Names of one hash have one position, and so are in one stretch.
type Stretch struct {
	From, To int64
	next     int64 // the position of the next record
}

// StartAt says that the first record has position at.
func (s *Stretch) StartAt(at int64) { s.next = max(s.From, at) }

// Cut keeps the records that lie in s, of those that the kernel gave next.
func (s *Stretch) Cut(records []byte) []byte {
	if s.To == math.MaxInt64 {
		return records
	}
	rest := records
	for len(rest) > 0 && s.next < s.To {
		_, length, err := sys.Parse(rest)
		if err != nil {
			return records // Add tells
		}
		s.next, rest = sys.After(rest), rest[length:]
	}
	return records[:len(records)-len(rest)]
}

// Ended reports whether no more of the directory is in s. Of the last stretch only the
// kernel knows.
func (s *Stretch) Ended() bool { return s.next >= s.To && s.To < math.MaxInt64 }

// Divide cuts what follows from into stretches, n at most and one at least.
func Divide(from int64, n int) (all []Stretch) {
	for i := 1; i < n; i++ {
		if to := math.MaxInt64 / int64(n) * int64(i); from < to {
			all = append(all, Stretch{from, to, from})
			from = to
		}
	}
	return append(all, Stretch{from, math.MaxInt64, from})
}

// reading is one reading of a directory. Each of its readers takes a stretch at a time,
// and the last to leave has all that was kept.
//
// While there are readers, mu guards the Plan too. From the last Leave to the next
// StartReading nothing is left, so a reader that comes late does not join, whatever the
// Gathering is used for by then.
type reading struct {
	mu      sync.Mutex
	left    []Stretch
	readers int
}

// StartReading is for the one that has the Gathering. The caller is a reader.
func (g *Gathering[D]) StartReading(stretches []Stretch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left, g.readers = stretches, 1
}

// Join makes the caller a reader, if a stretch is left.
func (g *Gathering[D]) Join() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.left) == 0 {
		return false
	}
	g.readers++
	return true
}

// TakeStretch is what a reader reads next. There is none once the range does not fit.
func (g *Gathering[D]) TakeStretch() (s Stretch, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.left) == 0 || !g.Fits() {
		return s, false
	}
	s, g.left = g.left[0], g.left[1:]
	return s, true
}

// AddRead is Add by a reader. It reports whether the range fits.
func (g *Gathering[D]) AddRead(records []byte) (fits bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	err = g.Add(records)
	return g.Fits(), err
}

// Leave reports whether the caller was the last reader. If so, no other joins.
func (g *Gathering[D]) Leave() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.readers--; g.readers > 0 {
		return false
	}
	g.left = nil
	return true
}
