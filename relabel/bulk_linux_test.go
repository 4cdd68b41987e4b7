// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

func btrfs(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("btrfs", args...).CombinedOutput(); err != nil {
		t.Fatalf("btrfs %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// subvolume is a new one, with some thousand entries whose labels are right:
// files of many names, in one directory and in several, long names, and so many
// items that they take several parts and buffers.
func subvolume(t *testing.T) string {
	t.Helper()
	treetest.Need(t, "root", "btrfs")
	root := filepath.Join(on(t, "btrfs"), "sub")
	btrfs(t, "subvolume", "create", root)
	text := "default label=" + newLabel + "\ndir .\ndir a%d x5\nlink l nowhere\nfifo p\n"
	for i := range 5 {
		text += fmt.Sprintf("file a%d/f%%03d x300\n", i)
	}
	grow(t, root, text)
	try := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	from := filepath.Join(root, "root", "a0", "f000")
	if _, err := os.Lstat(from); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", 240)
	for i := range 60 { // more than one reference item holds
		try(os.Link(from, filepath.Join(root, "root", "a0", fmt.Sprint(long, i))))
		try(os.Link(from, filepath.Join(root, "root", fmt.Sprintf("a%d", 1+i%4), fmt.Sprint("link", i))))
	}
	for i := range 20 { // attributes beside the label's
		try(unix.Lsetxattr(from, fmt.Sprintf("user.x%d", i), make([]byte, 100), 0))
	}
	treetest.Label(t, root, newLabel)
	return root
}

// bothWays reads root by walking and in bulk, and compares.
func bothWays(t *testing.T, root, how string) Report {
	t.Helper()
	var reports [2]Report
	var told [2]map[string]bool
	for i, m := range []means{{way: probe().way, clones: true, openat2: true}, probe()} {
		told[i] = map[string]bool{}
		r, err := tree(t.Context(), root, newLabel, Options{DryRun: true, OnChange: func(path, from string) { told[i][path+" "+from] = true }}, as(m))
		adds(t, r)
		if err != nil {
			t.Fatal(err)
		}
		reports[i] = r
	}
	walk, bulk := reports[0], reports[1]
	if bulk.Seen != walk.Seen || bulk.Right != walk.Right || bulk.Written != walk.Written || len(treetest.Diff(told[0], told[1])) > 0 {
		t.Errorf("%s: walk %+v, bulk %+v%s", how, walk, bulk, lines(treetest.Diff(told[0], told[1])))
	}
	return bulk
}

func isBulk(r Report) bool { return strings.HasSuffix(r.Way, "/bulk") }

// TestBulk: what is read in bulk is what a walk finds, whatever is wrong, and is
// then labelled.
func TestBulk(t *testing.T) {
	root := subvolume(t)
	if r := bothWays(t, root, "all right"); !isBulk(r) || r.Right < 1500 || !r.Complete {
		t.Errorf("%+v", r)
	}
	all := treetest.Types(t, root)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 12 {
		n := 0
		for path := range all {
			if path != "." && random.IntN(1+len(all)/(1<<round)) == 0 {
				treetest.Set(t, root, path, []string{oldLabel, newLabel + "3", longLabel()}[random.IntN(3)])
				n++
			}
		}
		r := bothWays(t, root, fmt.Sprint("round ", round))
		if !isBulk(r) || n > 0 && r.Written == 0 {
			t.Errorf("%d wrong: %+v", n, r)
		}
		healed, err := Tree(t.Context(), root, newLabel, Options{Threads: 1 + round%3})
		adds(t, healed)
		// A file of many names is written by one of them.
		if err != nil || !healed.Complete || !isBulk(healed) || healed.Seen != r.Seen || healed.Written > r.Written || n > 0 && healed.Written == 0 {
			t.Errorf("round %d: %+v, %v; before it %+v", round, healed, err, r)
		}
		if have := len(bearing(t, root, newLabel)); have != len(all) {
			t.Errorf("round %d: %d of %d are right", round, have, len(all))
		}
	}
}

// TestBulkLeft: what is not for reading in bulk is walked.
func TestBulkLeft(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, root string)
		o      Options
	}{
		"a subvolume in it":   {func(t *testing.T, root string) { btrfs(t, "subvolume", "create", root+"/root/a1/sub") }, Options{}},
		"a mount in it":       {func(t *testing.T, root string) { bind(t, root+"/root/a1", root+"/root/a2") }, Options{}},
		"an exclusion":        {func(*testing.T, string) {}, Options{Exclude: []string{"/root/a1"}}},
		"hard links":          {func(*testing.T, string) {}, Options{HardLinks: LinksSkip}},
		"a path that is long": {func(t *testing.T, root string) { wrongAndDeep(t, root) }, Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			root := subvolume(t)
			c.change(t, root)
			for i := range c.o.Exclude {
				c.o.Exclude[i] = root + c.o.Exclude[i]
			}
			r, err := Tree(t.Context(), root, newLabel, c.o)
			adds(t, r)
			if err != nil || isBulk(r) {
				t.Errorf("%+v, %v", r, err)
			}
			for path, l := range treetest.Read(t, root) {
				if l != newLabel && name != "an exclusion" && name != "a mount in it" {
					t.Errorf("%s bears %s", path, l)
				}
			}
		})
	}
	t.Run("no subvolume", func(t *testing.T) {
		root := filepath.Join(subvolume(t), "root")
		if r, err := Tree(t.Context(), root, newLabel, Options{}); err != nil || isBulk(r) {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// takeOff takes a label off. Nobody may where SELinux is on; there it gives another.
func takeOff(t *testing.T, root, path string) {
	t.Helper()
	label := treetest.None
	if treetest.Policed() {
		label = oldLabel
	}
	treetest.Set(t, root, path, label)
}

// wrongAndDeep makes a wrong file so deep that its path is longer than the kernel
// tells.
func wrongAndDeep(t *testing.T, root string) {
	t.Helper()
	name := strings.Repeat("d", 250)
	at, err := unix.Open(root, unix.O_PATH, 0)
	for range 20 {
		if err == nil {
			err = unix.Mkdirat(at, name, 0o700)
		}
		if err == nil {
			next := 0
			next, err = unix.Openat(at, name, unix.O_PATH, 0)
			unix.Close(at)
			at = next
		}
	}
	unix.Close(at)
	if err != nil {
		t.Fatal(err)
	}
}

// TestBulkSince: on a subvolume the mark is exact. Labels changed in place are
// found too, taken off too, and what is unchanged is not read.
func TestBulkSince(t *testing.T) {
	root := subvolume(t)
	all := int64(len(treetest.Read(t, root)))
	treetest.Set(t, root, ".", oldLabel)
	if r, err := Tree(t.Context(), root, newLabel, Options{}); err != nil || r.Seen != all {
		t.Fatalf("%+v, %v", r, err)
	}
	few := func(what string, written int64) {
		t.Helper()
		r := since(t, root)
		if !isBulk(r) || r.Since.IsZero() || r.Written != written || r.Seen > all/2 {
			t.Errorf("%s: %+v", what, r)
		}
		if have := len(bearing(t, root, newLabel)); have != len(treetest.Read(t, root)) {
			t.Errorf("%s: %d are right", what, have)
		}
	}
	since(t, root) // what the first run wrote
	few("nothing changed", 0)
	treetest.Set(t, root, "root/a3/f123", oldLabel)
	few("a label changed in place", 1)
	takeOff(t, root, "root/a4/f222")
	few("a label taken off", 1)
	if err := os.MkdirAll(filepath.Join(root, "root/a2/new/er"), 0o700); err != nil {
		t.Fatal(err)
	}
	few("directories more", 2)
	if err := os.Rename(filepath.Join(root, "root/a3"), filepath.Join(root, "root/a2/new/a3")); err != nil {
		t.Fatal(err)
	}
	few("moved", 0)
	few("nothing changed, again", 0)
	for i := 0; i < 300; i += 7 { // at the ends of leaves too
		takeOff(t, root, fmt.Sprintf("root/a1/f%03d", i))
		r := since(t, root)
		if r.Written != 1 {
			t.Errorf("f%03d was missed: %+v", i, r)
		}
	}
}
