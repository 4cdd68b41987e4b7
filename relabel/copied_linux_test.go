// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestMarkCopied: what copies a volume with its attributes onto another directory,
// as cp -a and rsync -X do, carries the mark there, which says nothing of what lay in
// that directory before.
func TestMarkCopied(t *testing.T) {
	treetest.Need(t, "root")
	var wg sync.WaitGroup
	for _, fs := range dated {
		dir := on(t, fs)
		from, to := mkdir(t, dir, "from"), mkdir(t, dir, "to")
		treetest.Build(t, from, treetest.Text(t, grown))
		treetest.Build(t, to, treetest.Text(t, grown))
		wg.Go(func() {
			nextSecond()
			if r, err := Tree(t.Context(), from, newLabel, nil); err != nil || !r.Complete {
				t.Errorf("%s: %+v, %v", fs, r, err)
			}
			mark, err := getMark(from)
			if err == nil {
				err = unix.Setxattr(to, commit.MarkName, []byte(mark), 0)
			}
			if err != nil {
				t.Error(err)
			}
			treetest.Set(t, to, ".", newLabel)
			if c, err := lastCommit(to); err != nil || c != (Commit{}) {
				t.Errorf("%s: %+v, %v", fs, c, err)
			}
			r := since(t, to)
			if n := len(bearing(t, to, newLabel)); n != grownAll || r.Unchanged != 0 {
				t.Errorf("%s: %d of %d are labelled: %+v", fs, n, grownAll, r)
			}
		})
	}
	wg.Wait()
}
