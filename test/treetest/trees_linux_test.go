// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// TestTrees builds every tree on every filesystem, finds all of it, and has
// the oracle label it. A stray set afterwards must show: else the comparison
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
				began := time.Now()
				tr := Load(t, name)
				Build(t, root, tr)
				built := time.Since(began)
				entries, err := tr.Expand()
				if err != nil {
					t.Fatal(err)
				}
				compareBuilt(t, root, entries)

				began = time.Now()
				n := Label(t, root, right)
				labelled := time.Since(began)
				all := Count(t, root).All
				if n.Seen != all || n.Seen != n.Written+n.Right+n.Skipped {
					t.Errorf("%d entries, but %+v", all, n)
				}
				bare := sealed(entries)
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
				stray := longest(got, bare)
				Set(t, root, stray, wrong)
				if d := Diff(want, Read(t, root)); len(d) == 0 {
					t.Errorf("a stray at %s goes unseen", short(stray))
				}
				t.Logf("%d entries: built in %v, labelled in %v", all, built, labelled)
			})
		}
	})
}

// longest picks the longest path that can have a label.
func longest(labels map[string]string, bare func(string) bool) string {
	best := "."
	for p := range labels {
		if len(p) > len(best) && !bare(p) {
			best = p
		}
	}
	return best
}

// compareBuilt holds the tree against its text: each entry is there, with its
// type and label, and nothing else is, but for what bind mounts show and what
// a mount covers.
func compareBuilt(t *testing.T, root string, entries []Entry) {
	t.Helper()
	found := List(t, root)
	wantTypes, gotTypes := map[string]Kind{}, Types(t, root)
	wantLabels, gotLabels := map[string]string{}, map[string]string{}
	mounted := map[string]int{} // where to which line
	for i, e := range entries {
		if e.Kind == Mount {
			mounted[e.Path] = i
		}
	}
	covered := func(p string, line int) bool {
		for ; len(mounted) > 0 && p != "."; p = filepath.Dir(p) {
			if mounted[filepath.Dir(p)] > line {
				return true
			}
		}
		return false
	}
	for i, e := range entries {
		if covered(e.Path, i) {
			continue
		}
		kind := e.Kind
		switch {
		case kind == Mount && e.FS == "bind":
			for p, k := range gotTypes {
				if p == e.Path || strings.HasPrefix(p, e.Path+"/") {
					wantTypes[p] = k
				}
			}
			continue
		case kind == Hardlink:
			kind = found[e.Target].Type
			if found[e.Path].Ino != found[e.Target].Ino {
				t.Errorf("%q and %q are two inodes", e.Path, e.Target)
			}
		case kind == Mount:
			kind = Dir
		}
		wantTypes[e.Path] = kind
		gotLabels[e.Path] = found[e.Path].Label
		switch {
		case e.Label.Says == Given:
			wantLabels[e.Path] = e.Label.Raw
		case found[e.Path].Label == Unsupported || e.Kind == Hardlink:
			wantLabels[e.Path] = found[e.Path].Label
		default:
			wantLabels[e.Path] = None
		}
	}
	wantTypes["."] = Dir
	if d := Diff(wantTypes, gotTypes); len(d) > 0 {
		t.Errorf("types:\n%s", strings.Join(d, "\n"))
	}
	if d := Diff(wantLabels, gotLabels); len(d) > 0 {
		t.Errorf("labels:\n%s", strings.Join(d, "\n"))
	}
}

func TestShapes(t *testing.T) {
	Need(t, "tmpfs")
	dir := Fresh(t, "tmpfs")
	for name, want := range map[string]Counts{
		"empty-root": {All: 1, Dirs: 1},
		"one-file":   {All: 2, Dirs: 1, Files: 1},
		"deep":       {All: 1 + 101 + 1 + 201 + 1 + 21 + 1 + 1, Dirs: 1 + 101 + 201 + 21, Files: 4},
		"wide":       {All: 1 + 2201 + 241, Dirs: 1 + 1 + 121, Files: 2320},
	} {
		root := filepath.Join(dir, name)
		Build(t, root, Load(t, name))
		if got := Count(t, root); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	long := longest(Read(t, filepath.Join(dir, "deep")), func(string) bool { return false })
	if len(long) < 2*unix.PathMax {
		t.Errorf("the longest path has %d bytes", len(long))
	}
}

func TestSnapshot(t *testing.T) {
	Each(t, func(t *testing.T, dir string) {
		out := filepath.Join(dir, "out")
		Build(t, out, Text(t, "file a/b label=x\nlink l a/b"))
		before := Snapshot(t, out+"/...", "/")
		if len(before) != 5 {
			t.Errorf("%d entries: %v", len(before), before)
		}
		if d := Diff(before, Snapshot(t, out+"/...", "/")); len(d) > 0 {
			t.Errorf("nothing was done, but:\n%s", strings.Join(d, "\n"))
		}
		time.Sleep(10 * time.Millisecond) // a tick of the kernel's clock
		if err := os.Chmod(filepath.Join(out, "a/b"), 0o600); err != nil {
			t.Fatal(err)
		}
		Set(t, out, "l", right)
		after := Snapshot(t, out+"/...", "/")
		if d := Diff(before, after); len(d) != 2 {
			t.Errorf("two entries changed, but:\n%s", strings.Join(d, "\n"))
		}
		if a := after[filepath.Join(out, "l")]; a.Label != right || a.Type != Link {
			t.Errorf("the link: %+v", a)
		}
		Set(t, out, "l", None)
		if got := Read(t, out); !maps.Equal(got, map[string]string{".": None, "a": None, "a/b": "x", "l": None}) {
			t.Errorf("Read: %v", got)
		}
	})
}
