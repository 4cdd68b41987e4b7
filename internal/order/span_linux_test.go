// SPDX-License-Identifier: Apache-2.0

package order

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// hashed is a directory that lists names by their hashes, some of which they share.
type hashed []int64

// read gives the records at positions from at on, as many as fit, and the position of
// the next.
func (h hashed) read(at int64, size int) (buf []byte, next int64) {
	i, _ := slices.BinarySearch(h, at)
	for ; i < len(h); i++ {
		start := len(buf)
		buf = sys.AppendRecord(buf, uint64(i), sys.KindFile, fmt.Append(nil, i))
		next := int64(math.MaxInt64)
		if i+1 < len(h) {
			next = h[i+1]
		}
		binary.NativeEndian.PutUint64(buf[start+8:], uint64(next))
		if len(buf) >= size && next != h[i] { // a listing goes on within one hash; this one cannot
			return buf, next
		}
	}
	return buf, math.MaxInt64
}

// TestSpans: whatever is read at a time, and wherever the names lie, each is in one
// span and in one alone.
func TestSpans(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for round := range 200 {
		var h hashed
		for range random.IntN(300) {
			at := random.Int64N(math.MaxInt64)
			if round%3 == 0 {
				at = math.MaxInt64/mostSpans*random.Int64N(mostSpans) + random.Int64N(2) // where spans begin, and many at one
			}
			h = append(h, at)
		}
		slices.Sort(h)
		for _, size := range []int{1, 100, 5000, 1 << 20} {
			seen := make([]int, len(h))
			for _, s := range Divide(0, mostSpans) {
				at := s.At
				if i, _ := slices.BinarySearch(h, at); i < len(h) {
					s.At = h[i]
				}
				for more := true; more && !s.Ended(); {
					var buf []byte
					buf, at = h.read(at, size)
					more = len(buf) > 0 && at < math.MaxInt64
					treetest.Must(t, each(s.Cut(buf), func(e sys.Dirent) { seen[e.Ino]++ }))
				}
			}
			for i, n := range seen {
				if n != 1 {
					t.Fatalf("%d at a time: name %d of %d, at %d, was read %d times", size, i, len(h), h[i], n)
				}
			}
		}
	}
	s := Divide(0, 2)[0]
	if b := []byte("malformed"); string(s.Cut(b)) != string(b) {
		t.Error("a malformed record is left for Add to report")
	}
}
