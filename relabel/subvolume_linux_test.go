// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

func btrfsSubvolume(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("btrfs", append([]string{"subvolume"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestReadOnlySubvolume: a snapshot that is read-only by itself is named and left
// alone as a read-only mount is; if its top is right, what is wrong in it is. A
// root that lies in one fails, as on a read-only filesystem.
func TestReadOnlySubvolume(t *testing.T) {
	treetest.Need(t, "root", "btrfs")
	dir := on(t, "btrfs")
	source := filepath.Join(dir, "source")
	btrfsSubvolume(t, "create", source)
	root := grow(t, dir, "default label="+oldLabel+"\ndir .\ndir d\nfile d/f%02d x40\nfile f%02d x40\n")
	treetest.Build(t, filepath.Join(source, "tree"), treetest.Text(t, "default label="+oldLabel+"\ndir .\nfile f\ndir d\nfile d/in\n"))
	snap := filepath.Join(root, "d/snap")
	for name, c := range map[string]struct {
		right, left []string
		dry         bool // a dry run says the same
	}{
		"wrong":             {nil, []string{"."}, true},
		"right at the top":  {[]string{".", "tree"}, []string{"tree/d", "tree/f"}, false},
		"right but for one": {[]string{".", "tree", "tree/d", "tree/f"}, []string{"tree/d/in"}, false},
		"right":             {[]string{".", "tree", "tree/d", "tree/f", "tree/d/in"}, nil, true},
	} {
		for _, p := range []string{".", "tree", "tree/d", "tree/f", "tree/d/in"} {
			treetest.Set(t, source, p, oldLabel)
		}
		for _, p := range c.right {
			treetest.Set(t, source, p, newLabel)
		}
		btrfsSubvolume(t, "snapshot", "-r", source, snap)
		before := treetest.Snapshot(t, snap+"/...")
		var want []string
		for _, l := range c.left {
			want = append(want, filepath.Join(snap, l))
		}
		for engine, m := range engines() {
			for o, options := range map[string]Options{"": {}, "exact": {Advanced: Advanced{Exact: true}}, "counted": {HardLinks: LinksSkip}, "dry": {inner: inner{check: true}}} {
				if options.inner.check && !c.dry {
					continue
				}
				for p := range treetest.Read(t, root) {
					if !strings.HasPrefix(p, "d/snap") {
						treetest.Set(t, root, p, oldLabel)
					}
				}
				at := fmt.Sprintf("%s, %s %s", name, engine, o)
				named := map[string]string{}
				options.Trace = &Trace{Skip: func(path, why string) { named[path] = why }}
				r, err := tree(t.Context(), root, newLabel, options, as(m))
				adds(t, r)
				if err != nil || r.Complete == options.inner.check || r.Skipped != int64(len(want)) {
					t.Errorf("%s: %+v, %v", at, r, err)
				}
				if got := slices.Sorted(maps.Keys(named)); !slices.Equal(got, want) {
					t.Errorf("%s: named %v, want %v", at, got, want)
				}
				if !options.inner.check && (labelOf(t, root) != newLabel || labelOf(t, root+"/d/f39") != newLabel) {
					t.Errorf("%s: the rest is not labelled", at)
				}
			}
		}
		if d := treetest.Diff(before, treetest.Snapshot(t, snap+"/...")); len(d) > 0 {
			t.Errorf("%s: the snapshot changed:\n%s", name, lines(d))
		}
		if len(want) > 0 {
			r, err := Tree(t.Context(), snap, newLabel, nil)
			if !errors.Is(err, syscall.EROFS) || r.Complete {
				t.Errorf("%s: as the root: %+v, %v", name, r, err)
			}
		}
		btrfsSubvolume(t, "delete", snap)
	}
}

// TestReadOnlySubvolumeOfRoot: the entries of the root are read twice, and what is
// left alone among them is named and counted once. So it is where it is mounted.
func TestReadOnlySubvolumeOfRoot(t *testing.T) {
	treetest.Need(t, "root", "btrfs")
	dir := on(t, "btrfs")
	source := filepath.Join(dir, "source")
	btrfsSubvolume(t, "create", source)
	for name, of := range map[string]func(root, at string){
		"directory": func(root, at string) { btrfsSubvolume(t, "snapshot", "-r", source, at) },
		"mount": func(root, at string) {
			btrfsSubvolume(t, "snapshot", "-r", source, filepath.Join(dir, "snap"))
			bind(t, filepath.Join(dir, "snap"), mkdir(t, at))
		},
	} {
		root := filepath.Join(dir, name)
		treetest.Build(t, root, treetest.Text(t, "default label="+oldLabel+"\ndir .\nfile f\n"))
		at := filepath.Join(root, "at")
		of(root, at)
		for engine, m := range engines() {
			treetest.Set(t, root, ".", oldLabel)
			told := 0
			r, err := tree(t.Context(), root, newLabel, Options{Trace: &Trace{Skip: func(path, _ string) {
				if told++; path != at {
					t.Errorf("%s: named %s", engine, path)
				}
			}}}, as(m))
			adds(t, r)
			if err != nil || !r.Complete || told != 1 || r.Skipped != 1 || r.Seen != 3 {
				t.Errorf("%s, %s: %+v, %v, told %d times", name, engine, r, err, told)
			}
		}
	}
}
