// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/internal/order"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
)

const (
	oldLabel = "system_u:object_r:container_file_t:s0:c7,c9"
	newLabel = "system_u:object_r:container_file_t:s0:c1,c2"
)

// engines are the ways to label, each forced as a kernel that has no better
// one would force it. That the kernel's answers lead to the right one of them
// is TestWayByAnswers' business.
func engines() map[string]capabilities {
	all := map[string]capabilities{
		"clone-fchdir": {kernel: walk.Kernel{Way: xattrio.ByThread, Sorting: scant}, clones: true, openat2: true},
		"clone-fd":     {kernel: walk.Kernel{Way: xattrio.ByDescriptor}, clones: true, openat2: true},
		"openat2-fd":   {kernel: walk.Kernel{Way: xattrio.ByName}, openat2: true},
		"mountid-fd":   {kernel: walk.Kernel{Way: xattrio.ByName}},
	}
	for name, way := range map[string]xattrio.Way{"small-at": xattrio.ByName, "small-fd": xattrio.ByDescriptor} {
		if way != xattrio.ByName || sys.HasXattrat() {
			all[name] = capabilities{kernel: walk.Kernel{Way: way}, clones: true, openat2: true, small: true, always: true}
		}
	}
	if sys.HasXattrat() {
		all["clone-xattrat"] = capabilities{kernel: walk.Kernel{Way: xattrio.ByName, Sorting: scant}, clones: true, openat2: true}
	}
	return all
}

// scant memory makes sorting, and several readings of a directory, a matter of
// small trees. The ways without it show that the order changes nothing else.
var scant = order.Sorting{From: 1, Budget: 8 << 10}

func as(m capabilities) func() capabilities { return func() capabilities { return m } }

// TestEveryWay holds the engine against a naive labeller on another walker:
// each tree, on each filesystem, each way, with few and many workers.
func TestEveryWay(t *testing.T) {
	treetest.Need(t, "root")
	for _, name := range treetest.All(t) {
		tree := treetest.Load(t, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			treetest.Each(t, func(t *testing.T, dir string) {
				oracle := filepath.Join(dir, "oracle")
				treetest.Build(t, oracle, tree)
				before := treetest.Read(t, oracle)
				treetest.Label(t, oracle, newLabel)
				want := treetest.Read(t, oracle)
				if len(treetest.Diff(before, want)) == 0 {
					t.Fatal("the oracle changed nothing: the tree proves nothing")
				}
				for engine, m := range engines() {
					for i, threads := range []int{1, 2, 16} {
						if testing.Short() && i != len(engine+t.Name())%3 {
							continue // each cell has one of its own
						}
						m.served = threads == 16
						t.Run(fmt.Sprintf("%s-%d", engine, threads), func(t *testing.T) {
							ours := filepath.Join(dir, fmt.Sprintf("%s-%d", engine, threads))
							treetest.Build(t, ours, tree)
							same(t, ours, want, m, threads)
						})
					}
				}
			})
		})
	}
}

// same labels the tree at root and compares it with what the oracle made.
func same(t *testing.T, root string, want map[string]string, m capabilities, threads int) {
	t.Helper()
	o := Options{Workers: threads, Advanced: Advanced{Exact: true}}
	left := map[string]bool{} // mounts that were left alone
	o.Trace = &Trace{Skip: func(path, _ string) { left[path] = true }}
	labelled := 0
	for _, l := range want {
		if l == newLabel {
			labelled++
		}
	}
	for _, turn := range []struct {
		name           string
		written, right int
	}{
		{"first", -1, -1},
		{"second", 0, labelled},
	} {
		clear(left)
		r, err := tree(t.Context(), root, newLabel, o, as(m))
		if err != nil || !r.Complete {
			t.Fatalf("%s run: complete %t, %v", turn.name, r.Complete, err)
		}
		if d := treetest.Diff(want, treetest.Read(t, root)); len(d) > 0 {
			t.Errorf("%s run differs from the oracle's:\n%s", turn.name, lines(d))
		}
		if r.Seen != r.Written+r.Right+r.Vanished+r.Skipped+r.Failed {
			t.Errorf("%s run: the counts do not add up: %+v", turn.name, r)
		}
		unseen := 0 // what lies in them, but for their tops
		for p, l := range want {
			if l == newLabel {
				continue // on a mount of its own beneath them
			}
			for up := filepath.Join(root, p); up != root && !left[up]; {
				if up = filepath.Dir(up); left[up] {
					unseen++
				}
			}
		}
		if r.Seen != int64(len(want)-unseen) {
			t.Errorf("%s run saw %d entries of %d: %+v", turn.name, r.Seen, len(want)-unseen, r)
		}
		if turn.written >= 0 && (r.Written != int64(turn.written) || r.Right != int64(turn.right)) {
			t.Errorf("%s run wrote %d and found %d right; want %d and %d", turn.name, r.Written, r.Right, turn.written, turn.right)
		}
	}
}

func lines(d []string) (s string) {
	for _, l := range d {
		s += "\t" + l + "\n"
	}
	return s
}

// TestRootSpelled labels the tree with mounts by other names for its root. What
// is mounted in it must be found by all of them.
func TestRootSpelled(t *testing.T) {
	treetest.Need(t, "root")
	nested := treetest.Load(t, "nested-mounts")
	treetest.Each(t, func(t *testing.T, dir string) {
		oracle := filepath.Join(dir, "oracle")
		treetest.Build(t, oracle, nested)
		treetest.Label(t, oracle, newLabel)
		want := treetest.Read(t, oracle)
		t.Chdir(dir)
		for i, spell := range []string{"%s", "./%s/", "%s//.", "../" + filepath.Base(dir) + "/%s", "%s-link/"} {
			name := fmt.Sprintf("v%d", i)
			treetest.Build(t, filepath.Join(dir, name), nested)
			if err := os.Symlink(name, name+"-link"); err != nil {
				t.Fatal(err)
			}
			r, err := Tree(t.Context(), fmt.Sprintf(spell, name), newLabel, nil)
			if err != nil || !r.Complete {
				t.Errorf("%q: complete %t, %v", r.Root, r.Complete, err)
			}
			if d := treetest.Diff(want, treetest.Read(t, filepath.Join(dir, name))); len(d) > 0 {
				t.Errorf("%q differs from the oracle's:\n%s", r.Root, lines(d))
			}
			if r.Seen != 24 {
				t.Errorf("%q: saw %d entries, want 24: what is covered by mounts is not in the tree", r.Root, r.Seen)
			}
		}
	})
}
