// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// growing is a tree whose root is read to its end before the walk goes deeper,
// so that what is made in the root from then on is found by the second look at
// it or not at all.
const growing = "default label=" + oldLabel + "\ndir .\ndir d\ndir d/e\nfile d/e/f%03d x400\n"

// TestCreatedMeanwhile makes files, links and whole directories in the root
// while what is deep in the tree is labelled.
func TestCreatedMeanwhile(t *testing.T) {
	runs := sized(20, 6)
	for engine, m := range engines() {
		for _, age := range []time.Duration{0, time.Hour} {
			missed, made := 0, 0
			for i := range runs {
				root := grow(t, on(t, "tmpfs"), growing)
				aged(t, root, age)
				n := 0
				r, err := tree(t.Context(), root, newLabel, Options{Workers: 1 + i%3, Advanced: Advanced{NoSync: true}, Trace: &Trace{Change: func(path, _, _ string) {
					if n++; strings.HasPrefix(filepath.Base(path), "f") && n > 10 && n%40 == 0 {
						made += create(t, root, n)
					}
				}}}, as(m))
				adds(t, r)
				if err != nil || !r.Complete {
					t.Errorf("%s: %+v, %v", engine, r, err)
				}
				for _, l := range treetest.Read(t, root) {
					if l != newLabel {
						missed++
					}
				}
			}
			if missed > 0 || made < 10*runs {
				t.Errorf("%s, the root %v old: missed %d of %d", engine, age, missed, made)
			}
		}
	}
}

// aged sets the root's times back: it then looks unchanged for long.
func aged(t *testing.T, root string, age time.Duration) {
	t.Helper()
	if err := os.Chtimes(root, time.Time{}, time.Now().Add(-age)); err != nil {
		t.Error(err)
	}
}

// create makes entries in the root, as many as it says.
func create(t *testing.T, root string, n int) int {
	dir := filepath.Join(root, fmt.Sprintf("dir%d", n))
	for _, err := range []error{
		os.WriteFile(filepath.Join(root, fmt.Sprintf("file%d", n)), nil, 0o600),
		os.Symlink("nowhere", filepath.Join(root, fmt.Sprintf("link%d", n))),
		os.MkdirAll(filepath.Join(dir, "deep"), 0o700),
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "deep", "file"), nil, 0o600),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	return 6
}

// TestCreatedUnseen is what the second look is for: the same without it, where
// nothing was there to tell of a change in the root.
func TestCreatedUnseen(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), growing)
	made := 0
	walkAlone(t, root, newLabel, Options{Workers: 1, Trace: &Trace{Change: func(path, _, _ string) {
		if strings.HasSuffix(path, "f200") {
			made = create(t, root, 1)
		}
	}}})
	missed := 0
	for p, l := range treetest.Read(t, root) {
		if p != "." && l != newLabel {
			missed++
		}
	}
	if made == 0 || missed != made {
		t.Errorf("the walk alone missed %d of %d: the other tests prove nothing", missed, made)
	}
}

// TestCreatedAndBackdated: tar and rsync set a directory's modification time
// back after they have created entries in it.
func TestCreatedAndBackdated(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), growing)
	when := time.Now().Add(-time.Hour)
	if err := os.Chtimes(root, when, when); err != nil {
		t.Fatal(err)
	}
	made := 0
	r, err := Tree(t.Context(), root, newLabel, &Options{Workers: 1, Trace: &Trace{Change: func(path, _, _ string) {
		if strings.HasSuffix(path, "f200") {
			made = create(t, root, 1)
			if err := os.Chtimes(root, when, when); err != nil {
				t.Error(err)
			}
		}
	}}})
	adds(t, r)
	if n, all := len(bearing(t, root, newLabel)), len(treetest.Read(t, root)); err != nil || made == 0 || n != all {
		t.Errorf("%d of %d are labelled: %+v, %v", n, all, r, err)
	}
}
