// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

func btrfs(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("btrfs", args...).CombinedOutput(); err != nil {
		t.Fatalf("btrfs %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// subvolume is a new one with text in it, which a run has found right.
func subvolume(t *testing.T, text string) string {
	t.Helper()
	treetest.Need(t, "root", "btrfs")
	root := filepath.Join(on(t, "btrfs"), "sub")
	btrfs(t, "subvolume", "create", root)
	treetest.Build(t, root, treetest.Text(t, "default label="+newLabel+"\ndir .\n"+text))
	nextSecond()
	since(t, root)
	return root
}

// rightNow fails the test for each entry that does not have the label.
func rightNow(t *testing.T, root string) {
	t.Helper()
	wrong := 0
	for path, label := range treetest.Read(t, root) {
		if label != newLabel {
			if wrong++; wrong <= 3 {
				t.Errorf("%s has %s", path, label)
			}
		}
	}
	if wrong > 3 {
		t.Errorf("and %d more", wrong-3)
	}
}

// TestBtrfsInPlace: labels that were changed in place are not found, be they few or
// many and whichever way the run before went, and no mark that is left claims that
// they were: a run that reads everything finds each.
func TestBtrfsInPlace(t *testing.T) {
	const dirs, names, long = 20, 60, 240
	treetest.Need(t, "root", "btrfs")
	root := filepath.Join(on(t, "btrfs"), "sub")
	btrfs(t, "subvolume", "create", root)
	treetest.Build(t, root, treetest.Text(t, "default label="+newLabel+"\ndir .\ndir d%02d x20\nfile f%02d x20\n"))
	below := func(d, n int) string { return fmt.Sprintf("d%02d/%0*d", d, long, n) }
	name := func(d, n int) string { return filepath.Join(root, below(d, n)) }
	for d := range dirs {
		if err := os.Rename(filepath.Join(root, fmt.Sprintf("f%02d", d)), name(d, 0)); err != nil {
			t.Fatal(err)
		}
		for n := 1; n < names; n++ {
			if err := os.Link(name(d, 0), name(d, n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	nextSecond()
	since(t, root)
	for what, c := range map[string]struct {
		wrong    int
		throttle func(context.Context, int) error
	}{
		"few": {wrong: 1}, "many": {wrong: dirs}, "throttled": {wrong: 1, throttle: func(context.Context, int) error { return nil }},
	} {
		for d := range c.wrong {
			treetest.Set(t, root, below(d, 0), oldLabel)
		}
		for _, throttle := range []func(context.Context, int) error{c.throttle, nil} {
			r, err := Tree(t.Context(), root, newLabel, &Options{Trust: TrustUnchanged, Throttle: throttle})
			if adds(t, r); err != nil || r.Since.IsZero() || r.Written != 0 || r.Unchanged != dirs {
				t.Errorf("%s: %+v, %v", what, r, err)
			}
		}
		r, err := Tree(t.Context(), root, newLabel, nil)
		if adds(t, r); err != nil || r.Written < int64(c.wrong) { // two workers may write a file of many names
			t.Errorf("%s: %+v, %v", what, r, err)
		}
		for d := range dirs {
			if l := labelOf(t, name(d, 0)); l != newLabel {
				t.Errorf("%s: d%02d has %s", what, d, l)
			}
		}
	}
}

// TestBtrfsNested: what is created in a subvolume of the subvolume is found,
// wherever the entry of that lies and however long nothing else has changed.
func TestBtrfsNested(t *testing.T) {
	treetest.Need(t, "root", "btrfs")
	root := filepath.Join(on(t, "btrfs"), "sub")
	btrfs(t, "subvolume", "create", root)
	treetest.Build(t, root, treetest.Text(t, "default label="+newLabel+"\ndir .\ndir a/b\nfile a/b/f%04d x600\n"))
	nested := filepath.Join(root, "a/b/nested")
	btrfs(t, "subvolume", "create", nested)
	treetest.Build(t, nested, treetest.Text(t, "default label="+newLabel+"\ndir .\ndir c/d\nfile c/d/f\n"))
	nextSecond()
	since(t, root)
	for _, at := range []string{"", "c", "c/d"} {
		fresh := filepath.Join(nested, at, "new")
		if err := os.WriteFile(fresh, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := since(t, root); r.Since.IsZero() || r.Unchanged == 0 || labelOf(t, fresh) != newLabel {
			t.Errorf("nested/%s: %+v, %s", at, r, labelOf(t, fresh))
		}
	}
	rightNow(t, root)
}

// TestBtrfsCreated: what is created in a wrong directory before that has its label
// is found.
func TestBtrfsCreated(t *testing.T) {
	root := subvolume(t, "dir a%d x9\ndir a0/d\ndir a1/d\ndir a2/d\ndir a3/d\ndir a4/d\ndir a5/d\ndir a6/d\ndir a7/d\ndir a8/d\nfile a0/f%d x9\n")
	for i := range 9 {
		treetest.Set(t, root, fmt.Sprintf("a%d/d", i), oldLabel)
		treetest.Set(t, root, fmt.Sprintf("a0/f%d", i), oldLabel)
	}
	made := 0
	r, err := Tree(t.Context(), root, newLabel, &Options{Workers: 1, Trace: &Trace{Change: func(string, string, string) {
		for i := range 9 {
			if d := filepath.Join(root, fmt.Sprintf("a%d/d", i)); labelOf(t, d) != newLabel {
				made++
				if err := os.WriteFile(filepath.Join(d, fmt.Sprint("new", made)), nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		}
	}}})
	adds(t, r)
	if err != nil || !r.Complete || made < 9 {
		t.Errorf("%+v, %v, %d made", r, err, made)
	}
	rightNow(t, root)
}
