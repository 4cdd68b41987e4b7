// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sealed tells what of a tree cannot be labelled, from the text of the tree:
// what is nearest mounted read-only, or is ramfs.
func sealed(entries []Entry) func(p string) bool {
	mounts := map[string]bool{}
	for _, e := range entries {
		if e.Kind == Mount {
			mounts[e.Path] = e.ReadOnly || e.FS == "ramfs"
		}
	}
	return func(p string) bool {
		for ; len(mounts) > 0 && p != "."; p = filepath.Dir(p) {
			if no, ok := mounts[p]; ok {
				return no
			}
		}
		return false
	}
}

// TestTrees builds every tree on every filesystem, and has the oracle label it. A stray set afterwards must show: else the comparison
// proves nothing.
func TestTrees(t *testing.T) {
	Each(t, func(t *testing.T, dir string) {
		for _, name := range All(t) {
			t.Run(name, func(t *testing.T) {
				root := filepath.Join(dir, "root")
				defer func() {
					if err := remove(root); err != nil {
						t.Error(err)
					}
				}()
				tr := Load(t, name)
				Build(t, root, tr)
				n := Label(t, root, right)
				all := Count(t, root).All
				if n.Seen != all || n.Seen != n.Written+n.Right+n.Skipped {
					t.Errorf("%d entries, but %+v", all, n)
				}
				bare := sealed(tr.Entries)
				got, want := Read(t, root), map[string]string{}
				for p, l := range got {
					if want[p] = right; bare(p) {
						want[p] = l
						if l == right {
							t.Errorf("%q cannot have a label, but does", p)
						}
					}
				}
				if d := Diff(want, got); len(d) > 0 {
					t.Errorf("after Label:\n%s", strings.Join(d, "\n"))
				}
				if again := Label(t, root, right); again.Written != 0 || again.Skipped != n.Skipped || again.Seen != n.Seen {
					t.Errorf("once %+v, twice %+v", n, again)
				}
				for _, e := range slices.Backward(tr.Entries) {
					if !bare(e.Path) {
						Set(t, root, e.Path, wrong)
						break
					}
				}
				if d := Diff(want, Read(t, root)); len(d) == 0 {
					t.Error("a stray goes unseen")
				}
			})
		}
	})
}
