// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// What go-selinux's own tests demand of the walk beneath selinux.Chcon (TestWalkDir and its
// kin) and the table does not, demanded of ours.

// branches are levels of directories, each with so many others and files in it.
func branches(t *testing.T, dir string, levels, dirs, files int) (total int) {
	t.Helper()
	for i := range dirs {
		sub := mkdir(t, dir, fmt.Sprint("d", i))
		for j := range files {
			writeFile(t, filepath.Join(sub, fmt.Sprint("f", j)))
		}
		total += 1 + files
		if levels > 0 {
			total += branches(t, sub, levels-1, dirs, files)
		}
	}
	return total
}

// TestChconRootRemoved: a root that is removed under the walk is no failure. Chcon reports no
// changes, so it is what Chcon calls.
func TestChconRootRemoved(t *testing.T) {
	for name, text := range map[string]string{
		"unlabelled": "dir .\nfile f%d x9\ndir d\n",
		"sealed":     "default label=" + oldLabel + "\ndir .\nfile f%d x9\ndir d\n",
	} {
		root := grow(t, on(t, "tmpfs"), text)
		_, err := Tree(t.Context(), root, newLabel, &Options{Trace: &Trace{Change: func(string, string, string) {
			treetest.Check(t, os.RemoveAll(root))
		}}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestChconManyFailures: half of the files fail. go-selinux demands an error; we
// demand all of them, named up to the number that an error holds, a sealed root, and that the
// other half is labelled.
func TestChconManyFailures(t *testing.T) {
	root := mkdir(t, on(t, "tmpfs"), "root")
	treetest.Set(t, root, ".", oldLabel)
	total := branches(t, root, 2, 3, 2) + 1
	files, err := filepath.Glob(root + "/d*/d*/d*/f*")
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	for _, f := range files {
		immutable(t, f, true)
	}
	err = Chcon(root, newLabel, true)
	var some *IncompleteError
	if !errors.As(err, &some) || some.Failed != int64(len(files)) || !errors.Is(err, unix.EPERM) {
		t.Fatalf("%d were to fail: %v", len(files), err)
	}
	named := map[string]bool{}
	for _, err := range some.First {
		named[pathOf(err)] = true
	}
	if len(named) != mostFirst || len(some.First) != mostFirst {
		t.Errorf("%d of %d are different", len(named), len(some.First))
	}
	if have := labelOf(t, root); !secctx.IsSeal(have, newLabel) {
		t.Errorf("the root has %s", have)
	}
	if n := len(bearing(t, root, newLabel)); n != total-len(files)-1 {
		t.Errorf("%d of %d are labelled", n, total)
	}
}
