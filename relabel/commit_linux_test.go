// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestLastCommit: what a run leaves is what is read back, and what is not a
// commit is none.
func TestLastCommit(t *testing.T) {
	treetest.Need(t, "root")
	treetest.Each(t, func(t *testing.T, dir string) {
		treetest.Build(t, dir, treetest.Text(t, grown))
		if c, err := LastCommit(dir); err != nil || c != (Commit{}) {
			t.Errorf("before: %+v, %v", c, err)
		}
		before := time.Now().Truncate(time.Second)
		if r, err := Tree(t.Context(), dir, newLabel, Options{}); err != nil || !r.Complete {
			t.Fatal(r, err)
		}
		c, err := LastCommit(dir)
		if err != nil || c.Label != newLabel || c.Entries != grownAll || c.Written != grownAll || c.Began.Before(before) || c.Ended.Before(c.Began) || c.Ended.After(time.Now()) {
			t.Errorf("after: %+v, %v", c, err)
		}
		if err := unix.Setxattr(dir, markName, []byte("version=1 label=x"), 0); err != nil {
			t.Fatal(err)
		}
		if c, err := LastCommit(dir); err != nil || c != (Commit{}) {
			t.Errorf("not a mark: %+v, %v", c, err)
		}
	})
	if _, err := LastCommit("/nothere"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
