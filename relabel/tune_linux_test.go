// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestTunes: while workers come and go all the time, all is labelled and counted
// once.
func TestTunes(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	text := treetest.Text(t, "default label="+oldLabel+"\ndir .\ndir d%d x40\nfile d7/f%d x9000\nfile d9/g%d x3000\n")
	for _, name := range slices.Sorted(maps.Keys(engines()))[:sized(len(engines()), 2)] {
		m := engines()[name]
		root := filepath.Join(on(t, "tmpfs"), "tree")
		treetest.Build(t, root, text)
		m.kernel.Restless = 50 * time.Microsecond
		const all = 1 + 40 + 9000 + 3000
		for run := range 2 {
			r, err := tree(t.Context(), root, newLabel, Options{Advanced: Advanced{NoSync: true}}, as(m))
			if err != nil || !r.Complete || r.Seen != all || run == 0 && r.Written != all || run == 1 && r.Right != all {
				t.Errorf("run %d: %+v, %v", run, r, err)
			}
		}
		if n := len(bearing(t, root, newLabel)); n != all {
			t.Errorf("%d of %d are labelled", n, all)
		}
	}
}
