// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestLastCommit: what a run leaves is what is read back, and what is not a
// commit is none.
func TestLastCommit(t *testing.T) {
	treetest.Need(t, "root")
	treetest.Each(t, func(t *testing.T, dir string) {
		treetest.Build(t, dir, treetest.Text(t, grown))
		if c, err := lastCommit(dir); err != nil || c != (Commit{}) {
			t.Errorf("before: %+v, %v", c, err)
		}
		before := time.Now().Add(-time.Second).Truncate(time.Second) // the clock of files is behind
		if r, err := Tree(t.Context(), dir, newLabel, nil); err != nil || !r.Complete {
			t.Fatal(r, err)
		}
		c, err := lastCommit(dir)
		if err != nil || c.Label != newLabel || c.Entries != grownAll || c.Written != grownAll || c.Began.Before(before) || c.Ended.Before(c.Began) || c.Ended.After(time.Now()) {
			t.Errorf("after: %+v, %v", c, err)
		}
		if err := unix.Setxattr(dir, commit.MarkName, []byte("version=1 label=x"), 0); err != nil {
			t.Fatal(err)
		}
		if c, err := lastCommit(dir); err != nil || c != (Commit{}) {
			t.Errorf("not a mark: %+v, %v", c, err)
		}
	})
	if _, err := lastCommit("/nothere"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestStateLastRun: during a run State says how many entries the last one met, also
// when its mark is off by then; and nothing where this run is to look at less.
func TestStateLastRun(t *testing.T) {
	treetest.Need(t, "root")
	dir := treetest.Fresh(t, "ext4")
	treetest.Build(t, dir, treetest.Text(t, grown))
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	all := treetest.Count(t, dir).All
	during := func(label string, o Options) (lastRun int64) {
		t.Helper()
		o.Progress = new(Progress)
		o.Throttle = func(context.Context, int) error {
			s, _ := o.Progress.State()
			lastRun = max(lastRun, s.LastRun)
			return nil
		}
		o.Workers = 1
		if _, err := Tree(t.Context(), dir, label, &o); err != nil {
			t.Fatal(err)
		}
		return lastRun
	}
	const other = "system_u:object_r:container_file_t:s0:c7"
	for _, c := range []struct {
		what, label string
		o           Options
		want        int64
	}{
		{"no run before", newLabel, Options{}, 0},
		{"the same label", newLabel, Options{inner: inner{check: true}}, all},
		{"another label", other, Options{}, all},
		{"what changed alone", other, Options{Trust: TrustUnchanged}, 0},
		{"but for an exclusion", other, Options{Exclude: []string{sub}}, 0},
		{"control: all again", newLabel, Options{}, all},
	} {
		if got := during(c.label, c.o); got != c.want {
			t.Errorf("%s: the last run met %d entries, not %d", c.what, got, c.want)
		}
	}
}
