// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestBatchSort: by inode number, nothing lost, whatever the numbers have in
// common.
func TestBatchSort(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var b batch // its memory is used again
	for _, n := range []int{0, 1, 2, 3000, 100, 70000} {
		for _, mask := range []uint64{0, 1, 1 << 31, 0x7ff, 0x3ff800, 0xffc00000, 0xffffffff} {
			words := make([]uint64, n)
			for i := range words {
				words[i] = (random.Uint64()&mask+12)<<inoBits | uint64(i)
			}
			b.index = append(b.index[:0], words...)
			b.sort()
			if !slices.IsSortedFunc(b.index, func(x, y uint64) int { return int(x>>inoBits) - int(y>>inoBits) }) {
				t.Errorf("%d words of %x are not sorted", n, mask)
			}
			slices.Sort(words)
			if slices.Sort(b.index); !slices.Equal(words, b.index) {
				t.Errorf("%d words of %x are others now", n, mask)
			}
		}
	}
}
