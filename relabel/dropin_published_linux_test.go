// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// What go-selinux's own tests demand of the walk beneath selinux.Chcon (TestWalkDir and its
// kin) and the table does not, demanded of ours.

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
	root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\nfile f%02d x50\ndir d\nfile d/f%02d x50\n")
	for i := range 50 {
		immutable(t, fmt.Sprintf("%s/d/f%02d", root, i), true)
	}
	err := Chcon(root, newLabel, true)
	var some *IncompleteError
	if !errors.As(err, &some) || some.Failed != 50 || !errors.Is(err, unix.EPERM) {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, err := range some.First {
		named[pathOf(err)] = true
	}
	if len(named) != mostFirst || len(some.First) != mostFirst {
		t.Errorf("%d of %d are different", len(named), len(some.First))
	}
	if have := labelOf(t, root); !secctx.IsSeal(have, newLabel) || len(bearing(t, root, newLabel)) != 51 {
		t.Errorf("the root has %s, and %d are labelled", have, len(bearing(t, root, newLabel)))
	}
}
