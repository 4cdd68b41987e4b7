// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestNoMark: a run that left something alone leaves no mark, and one that found
// all as it was writes none.
func TestNoMark(t *testing.T) {
	treetest.Need(t, "root")
	for name, c := range map[string]struct {
		o    func(root string) Options
		mark bool
	}{
		"plain":     {func(string) Options { return Options{} }, true},
		"no sync":   {func(string) Options { return Options{Advanced: Advanced{NoSync: true}} }, false},
		"dry":       {func(string) Options { return Options{inner: inner{check: true}, Trust: TrustUnchanged} }, false},
		"exclusion": {func(root string) Options { return Options{Exclude: []string{filepath.Join(root, "a1")}} }, false},
		"links":     {func(string) Options { return Options{HardLinks: LinksSkip} }, false},
		"mount": {func(root string) Options {
			if err := unix.Mount("test", filepath.Join(root, "a1"), "tmpfs", 0, ""); err != nil {
				t.Error(err)
			}
			return Options{}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := grow(t, on(t, "tmpfs"), grown)
			if err := os.Link(filepath.Join(root, "f1"), filepath.Join(root, "link")); err != nil {
				t.Fatal(err)
			}
			defer unix.Unmount(filepath.Join(root, "a1"), unix.MNT_DETACH) // if it is one
			o := c.o(root)
			r, err := Tree(t.Context(), root, newLabel, &o)
			if err != nil || !r.Complete && name != "dry" {
				t.Errorf("%+v, %v", r, err)
			}
			if _, err := getMark(root); (err == nil) != c.mark {
				t.Errorf("the mark: %v", err)
			}
			if !c.mark {
				return
			}
			nextSecond()
			before := treetest.Snapshot(t, root)
			if r, err := Tree(t.Context(), root, newLabel, nil); err != nil || r.Written != 0 {
				t.Errorf("%+v, %v", r, err)
			}
			if d := treetest.Diff(before, treetest.Snapshot(t, root)); len(d) > 0 {
				t.Errorf("a second run changed %s", lines(d))
			}
		})
	}
}

func getMark(root string) (string, error) {
	buf := make([]byte, 4096)
	n, err := unix.Getxattr(root, commit.MarkName, buf)
	return string(buf[:max(n, 0)]), err
}

// TestPartial: what is mounted beside the root leaves nothing of it to others.
func TestPartial(t *testing.T) {
	for name, c := range map[string]struct {
		with    func(r *run)
		partial bool
	}{
		"whole":         {func(*run) {}, false},
		"excluded":      {func(r *run) { r.bounds.Excluded = map[mounts.ID]string{{}: "excluded"} }, true},
		"mounted":       {func(r *run) { r.proc.Mounts = []mountinfo.Mount{{Point: "/v/m"}} }, true},
		"mounted aside": {func(r *run) { r.proc.Mounts = []mountinfo.Mount{{Point: "/vm"}} }, false},
	} {
		r := &run{proc: &mounts.Proc{}}
		c.with(r)
		if got := r.partial(&mount{Mount: &mounts.Mount{Real: "/v"}}); got != c.partial {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestUnchangedMtimePutBack: what is moved into the root right behind the mark, with
// the root's modification time put back, is found by the next run.
func TestUnchangedMtimePutBack(t *testing.T) {
	treetest.Need(t, "root")
	for _, fs := range dated {
		dir := on(t, fs)
		root := grow(t, dir, grown)
		outside := mkdir(t, dir, "outside", "d")
		if err := os.WriteFile(filepath.Join(outside, "f"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		treetest.Label(t, root, newLabel)
		then := time.Now().Add(-time.Hour)
		putBack := func() {
			if err := os.Chtimes(root, time.Time{}, then); err != nil {
				t.Fatal(err)
			}
		}
		putBack()
		since(t, root)
		if err := os.Rename(outside, filepath.Join(root, "d")); err != nil {
			t.Fatal(err)
		}
		putBack()
		since(t, root)
		if l := labelOf(t, filepath.Join(root, "d/f")); l != newLabel {
			t.Errorf("%s: it has %s", fs, l)
		}
	}
}

// TestSubvolume: a snapshot begins with the times of what it was taken from.
func TestSubvolume(t *testing.T) {
	treetest.Need(t, "root", "btrfs")
	btrfs := func(args ...string) {
		if out, err := exec.Command("btrfs", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	dir := on(t, "btrfs")
	from, root := filepath.Join(dir, "from"), grow(t, dir, grown)
	btrfs("subvolume", "create", from)
	grow(t, from, grown)
	nextSecond()
	since(t, root)
	nextSecond()
	since(t, root)
	btrfs("subvolume", "snapshot", from, filepath.Join(root, "a1/b1/snap"))
	since(t, root)
	all := treetest.Read(t, root)
	if n := len(bearing(t, root, newLabel)); n != len(all) || n < 2*grownAll {
		t.Errorf("%d of %d labelled", n, len(all))
	}
}
