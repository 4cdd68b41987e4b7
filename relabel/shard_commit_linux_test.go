// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestShardsMissing: who commits is told which shards have left no proof.
func TestShardsMissing(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), divided)
	not := func(want string) {
		t.Helper()
		r, err := commits(t, root, newLabel, 4)
		if !errors.Is(err, ErrShards) || !strings.Contains(err.Error(), ": "+want+" of 0 to 3") || r.Seen > 0 {
			t.Errorf("%+v, %v", r, err)
		}
		vouching(t, root, oldLabel, newLabel)
	}
	if _, err := commits(t, root, newLabel, 4); !errors.Is(err, ErrShards) || !strings.Contains(err.Error(), "none to this label") {
		t.Error(err)
	}
	for _, i := range []int{2, 0} {
		proves(t, root, newLabel, i, 4)
	}
	not("1, 3")
	stoppedShard(t, root, newLabel, 1, 4, 20)
	not("1, 3")
	for _, i := range []int{1, 3} {
		proves(t, root, newLabel, i, 4)
	}
	stoppedShard(t, root, newLabel, 2, 4, 20)
	not("2") // what it had left does not outlive that
	proves(t, root, newLabel, 2, 4)
	committed(t, root, newLabel, 4)
	if r, err := commits(t, root, newLabel, 4); err != nil || r.Written > 0 {
		t.Errorf("%+v, %v", r, err) // it has the label already
	}
	if r, err := CommitShards(t.Context(), root, newLabel, 4, &Options{Trust: TrustRoot}); err != nil || !r.Trusted {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestShardsRootChanges: what comes to the root while shards are at work, and is not seen
// by each of them, has the label when they are committed.
func TestShardsRootChanges(t *testing.T) {
	treetest.Need(t, "root")
	long := time.Now().Add(-time.Hour)
	for name, change := range map[string]func(root string, i int) error{
		"a directory": func(root string, i int) error { return fill(filepath.Join(root, fmt.Sprint("new", i))) },
		"a file": func(root string, i int) error {
			return os.WriteFile(filepath.Join(root, fmt.Sprint("new", i)), nil, 0o600)
		},
		"another directory": func(root string, _ int) error {
			_ = os.RemoveAll(filepath.Join(root, "g"))
			return fill(filepath.Join(root, "g"))
		},
		"a rename": func(root string, i int) error {
			return os.Rename(filepath.Join(root, fmt.Sprintf("e%02d", i)), filepath.Join(root, fmt.Sprint("moved", i)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := grow(t, on(t, "ext4"), divided)
			for i := range 4 {
				if err := change(root, i); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(root, long, long); err != nil { // as tar does
					t.Fatal(err)
				}
				proves(t, root, newLabel, i, 4)
			}
			r, err := commits(t, root, newLabel, 4)
			if err != nil || vouching(t, root, newLabel) != newLabel || (name != "a file") != (len(r.Notes) > 0) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	root := grow(t, on(t, "ext4"), divided)
	shards(t, root, newLabel, 2)
	for _, name := range []string{"file", "link"} {
		if err := os.Symlink("nowhere", filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(root, long, long); err != nil {
		t.Fatal(err)
	}
	if r := committed(t, root, newLabel, 2); r.Written != 3 {
		t.Errorf("%+v", r)
	}
}

// TestShardRestarted: a shard that begins again while all are committed has the commit
// taken back.
func TestShardRestarted(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), divided)
	shards(t, root, newLabel, 2)
	_, err := CommitShards(t.Context(), root, newLabel, 2, &Options{Advanced: Advanced{NoSync: true}, Trace: &Trace{Change: func(string, string, string) {
		if err := unix.Removexattr(root, commit.ProofName(1)); err != nil { // as it does at first
			t.Error(err)
		}
	}}})
	if !errors.Is(err, ErrOvertaken) {
		t.Error(err)
	}
	silent(t, root, oldLabel, newLabel)
}

// TestShardsCommitEnds: the root gets the label when what came to it since the shards has it,
// as the commit may be killed then. One that fails later can be repeated.
func TestShardsCommitEnds(t *testing.T) {
	treetest.Need(t, "root", "ext4")
	root := grow(t, on(t, "ext4"), divided)
	shards(t, root, newLabel, 2)
	add := func(name string) string {
		path := filepath.Join(root, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Error(err)
		}
		treetest.Set(t, root, name, oldLabel)
		return path
	}
	early, late := add("early"), ""
	immutable(t, early, true)
	if _, err := commits(t, root, newLabel, 2); pathOf(err) != early {
		t.Error(err)
	}
	vouching(t, root, newLabel)
	immutable(t, early, false)
	_, err := CommitShards(t.Context(), root, newLabel, 2, &Options{Trace: &Trace{Change: func(path, _, _ string) {
		if path == root {
			if wrong := bearing(t, root, oldLabel); labelOf(t, root) != newLabel || len(wrong) > 0 {
				t.Errorf("the root has %s, and %q the old label", labelOf(t, root), wrong)
			}
			late = add("late")
			immutable(t, late, true)
		}
	}}})
	if pathOf(err) != late {
		t.Error(err)
	}
	silent(t, root, oldLabel, newLabel)
	immutable(t, late, false)
	committed(t, root, newLabel, 2)
}

// TestShardsRenames: a directory that changes its name between two shards, and so its owner,
// has the label when they are committed, with all beneath it.
func TestShardsRenames(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir a\ndir a/b\ndir a/b/c%d x8\nfile a/b/c3/file\nfile a/b/c5/file\n")
	proves(t, root, newLabel, 0, 2)
	for i := range 8 {
		if err := os.Rename(filepath.Join(root, fmt.Sprint("a/b/c", i)), filepath.Join(root, fmt.Sprint("a/b/other", i))); err != nil {
			t.Fatal(err)
		}
	}
	proves(t, root, newLabel, 1, 2)
	if r := committed(t, root, newLabel, 2); len(r.Notes) == 0 {
		t.Errorf("%+v", r)
	}
}
