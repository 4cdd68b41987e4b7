// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
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

// TestWindows: what lies in a directory larger than a buffer is labelled in the
// order of inodes, in one window or in many, and nothing is left out.
func TestWindows(t *testing.T) {
	treetest.Need(t, "ext4")
	const files, every int64 = 6000, 50
	root := mkdir(t, treetest.Fresh(t, "ext4"), "root")
	flat := mkdir(t, root, "flat")
	for i := range files {
		name := fmt.Sprintf("%s/file%08d", flat, i)
		if i%every == 0 {
			mkdir(t, flat, fmt.Sprintf("dir%08d", i), "deeper")
		}
		if err := unix.Mknod(name, unix.S_IFREG|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name    string
		budget  int
		threads int
	}{{"one", ample.budget, 1}, {"many", 1, 1}, {"shared", 1, 4}} {
		t.Run(c.name, func(t *testing.T) {
			m := means{openat2: true, sorting: sorting{from: ample.from, budget: c.budget}}
			for range 2 {
				if _, err := tree(t.Context(), root, newLabel, Options{}, as(m)); err != nil {
					t.Fatal(err)
				}
			}
			var inodes []uint64
			for i := int64(0); i < files; i += every {
				treetest.Set(t, flat, fmt.Sprintf("file%08d", i), oldLabel)
			}
			r, err := tree(t.Context(), root, newLabel, Options{Threads: c.threads, OnChange: func(path, _ string) {
				st, _ := statPath(path)
				inodes = append(inodes, st.Ino)
			}}, as(m))
			all := files + 2*files/every + 2
			if err != nil || r.Seen != all || r.Written != files/every || r.Right != all-files/every || int64(len(inodes)) != r.Written {
				t.Errorf("%d told: %+v, %v", len(inodes), r, err)
			}
			if sorted := slices.IsSorted(inodes); sorted != (c.name == "one") {
				t.Errorf("in the order of inodes: %t", sorted)
			}
		})
	}
}
