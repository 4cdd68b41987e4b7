// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// What go-selinux's own tests demand of label.Relabel and of the walk beneath
// selinux.Chcon (TestRelabel, TestWalkDir and its kin), demanded of ours.

// TestRelabelPublished: no label, shared, private; and what is refused.
func TestRelabelPublished(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), small)
	t.Setenv("HOME", mkdir(t, filepath.Dir(root), "home"))
	turn(t, true)
	for _, c := range []struct {
		label  string
		shared bool
		want   string
	}{
		{"", true, oldLabel},
		{newLabel, true, "system_u:object_r:container_file_t:s0"},
		{newLabel, false, newLabel},
	} {
		if err := Relabel(root, c.label, c.shared); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if n, of := len(bearing(t, root, c.want)), len(treetest.Read(t, root)); n != of {
			t.Errorf("%+v: %d of %d", c, n, of)
		}
	}
	for _, path := range []string{"/etc", "/", "/usr", "/usr/", "/etc/passwd", os.Getenv("HOME")} {
		if err := Chcon(path, newLabel, false); !errors.Is(err, ErrRefused) { // the lesser harm first
			t.Fatalf("%s: %v", path, err)
		}
		if err := Relabel(path, newLabel, false); !errors.Is(err, ErrRefused) {
			t.Fatalf("%s: %v", path, err)
		}
	}
}

// branches are levels of directories, each with so many others and files in it.
func branches(t *testing.T, dir string, levels, dirs, files int) (total int) {
	t.Helper()
	for i := range dirs {
		sub := mkdir(t, dir, fmt.Sprint("d", i))
		for j := range files {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprint("f", j)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		total += 1 + files
		if levels > 0 {
			total += branches(t, sub, levels-1, dirs, files)
		}
	}
	return total
}

// TestChconVisitsAll: every entry, once.
func TestChconVisitsAll(t *testing.T) {
	root := mkdir(t, on(t, "tmpfs"), "root")
	total := branches(t, root, 3, 2, 1) + 1
	if err := Chcon(root, newLabel, true); err != nil {
		t.Fatal(err)
	}
	if n := len(bearing(t, root, newLabel)); n != total || total < 50 {
		t.Errorf("%d of %d", n, total)
	}
}

// TestChconMissingRoot: that nothing is there is an error of the root alone.
func TestChconMissingRoot(t *testing.T) {
	treetest.Need(t, "root")
	err := Chcon("non-existent-directory", newLabel, true)
	if !errors.Is(err, os.ErrNotExist) || pathOf(err) != "non-existent-directory" {
		t.Error(err)
	}
	if err := Chcon("non-existent-directory", newLabel, false); err != nil {
		t.Error(err)
	}
}

// TestChconRemovedMeanwhile: what is removed under the walk is no failure, nor is
// the root. One that is gone before the walk begins is.
func TestChconRemovedMeanwhile(t *testing.T) {
	late := 0
	for range 10 {
		root := mkdir(t, on(t, "tmpfs"), "root")
		branches(t, root, 2, 4, 6)
		before := runtime.NumGoroutine()
		var remover sync.WaitGroup
		remover.Go(func() {
			if err := os.RemoveAll(root); err != nil {
				t.Error(err)
			}
		})
		err := Chcon(root, newLabel, true)
		remover.Wait()
		if err == nil {
			late++
		} else if !errors.Is(err, os.ErrNotExist) || pathOf(err) != root {
			t.Fatal(err)
		}
		ended(t, before)
	}
	if late == 0 {
		t.Error("in each round the root was gone before the walk began")
	}
}

// TestChconRootRemoved: as above, and it is known who was first. Chcon tells no
// changes, so it is what Chcon calls.
func TestChconRootRemoved(t *testing.T) {
	for name, text := range map[string]string{
		"unlabelled": "dir .\nfile f%d x9\ndir d\n",
		"sealed":     "default label=" + oldLabel + "\ndir .\nfile f%d x9\ndir d\n",
	} {
		root := grow(t, on(t, "tmpfs"), text)
		_, err := Tree(t.Context(), root, newLabel, &Options{Trace: &Trace{Change: func(string, string, string) {
			if err := os.RemoveAll(root); err != nil {
				t.Error(err)
			}
		}}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestChconManyFailures: half of the files fail. go-selinux demands an error; we
// demand all of them, and that the other half is labelled.
func TestChconManyFailures(t *testing.T) {
	root := mkdir(t, on(t, "tmpfs"), "root")
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
		t.Errorf("%d were to fail: %v", len(files), err)
	}
	if n := len(bearing(t, root, newLabel)); n != total-len(files)-1 {
		t.Errorf("%d of %d are labelled", n, total)
	}
}

// TestChconTogether: callers of the same tree do not come between each other.
// What all of it has in the end is what one of them asked for.
func TestChconTogether(t *testing.T) {
	root := mkdir(t, on(t, "tmpfs"), "root")
	total := branches(t, root, 1, 3, 20) + 1
	before := runtime.NumGoroutine()
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			if err := Chcon(root, []string{oldLabel, newLabel}[i%2], true); err != nil {
				t.Error(err)
			}
		})
	}
	treetest.Returns(t, "all callers", callers.Wait)
	if n := len(bearing(t, root, labelOf(t, root))); n != total {
		t.Errorf("%d of %d have the root's label", n, total)
	}
	ended(t, before)
}
