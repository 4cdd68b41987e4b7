// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"sync/atomic"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestSeen: what can be read while Tree runs grows, and ends where the Report
// does, by each way.
func TestSeen(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	for engine, m := range engines() {
		for _, threads := range []int{1, 8} {
			root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir d%d x9\nfile d1/f%04d x3000\ndir m\nmount m tmpfs\nfile m/f\n")
			var seen atomic.Int64
			steps := map[int64]bool{}
			o := Options{Threads: threads, NoSync: true, Seen: &seen, OnChange: func(string, string) { steps[seen.Load()] = true }}
			r, err := tree(t.Context(), root, newLabel, o, as(m))
			if err != nil || seen.Load() != r.Seen || len(steps) < 4 {
				t.Errorf("%s, %d: %d of %+v in %d steps, %v", engine, threads, seen.Load(), r, len(steps), err)
			}
		}
	}
}
