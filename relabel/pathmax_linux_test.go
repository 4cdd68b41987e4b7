// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// beyondPathMax grows the tree in a directory beneath dir that is deeper than the
// kernel tells a path. Its root is the working directory until the test ends.
func beyondPathMax(t *testing.T, dir, text string) {
	t.Helper()
	root := grow(t, dir, "default label="+oldLabel+"\n"+text)
	t.Chdir(dir)
	name := strings.Repeat("d", 200)
	for range 22 {
		mkdir(t, name)
		t.Chdir(name)
	}
	if err := os.Rename(root, "root"); err != nil {
		t.Fatal(err)
	}
	t.Chdir("root")
	if _, err := unix.Getcwd(make([]byte, 1<<16)); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Fatalf("control: the kernel tells the path: %v", err)
	}
}

// TestBeyondPathMax labels a root whose path is longer than the kernel tells, with
// the mounts beneath it, and no other mount.
func TestBeyondPathMax(t *testing.T) {
	const text = "dir .\ndir a\ndir a/m\ndir a/b\ndir sub\nfile sub/f\nfile f\n"
	for engine, m := range engines() {
		t.Run(engine, func(t *testing.T) {
			beyondPathMax(t, on(t, "tmpfs"), text)
			mounted(t, "tmpfs", mkdir(t, "../beside/a/m"), "")
			writeFile(t, "../beside/a/m/f")
			if ok, err := isLabelled(".", oldLabel, TrustTop); err != nil || !ok {
				t.Errorf("probe: %t, %v", ok, err)
			}
			if r, err := tree(t.Context(), "sub", newLabel, Options{}, as(m)); err != nil || !r.Complete || r.Written != 2 {
				t.Errorf("sub: %+v, %v", r, err)
			}
			if _, err := new(Group).Tree(t.Context(), ".", newLabel, TrustNothing); !errors.Is(err, syscall.ENAMETOOLONG) {
				t.Errorf("in a group, where the working directory may change: %v", err)
			}
			mounted(t, "tmpfs", "a/m", "")
			mounted(t, "tmpfs", mkdir(t, "a/m/x/n"), "")
			mounted(t, "tmpfs", "a/b", "")
			mounted(t, "tmpfs", "a/b", "") // one on the other
			for _, f := range []string{"a/m/f", "a/m/x/n/f", "a/b/f"} {
				writeFile(t, f)
			}
			r, err := tree(t.Context(), ".", newLabel, Options{inner: inner{check: true}}, as(m))
			if err != nil || r.Seen != 12 || labelOf(t, "f") != oldLabel {
				t.Errorf("dry run: %+v, %v", r, err)
			}
			r, err = tree(t.Context(), ".", newLabel, Options{}, as(m))
			adds(t, r)
			if err != nil || !r.Complete || r.Seen != 12 {
				t.Errorf("%+v, %v", r, err)
			}
			for p, label := range treetest.Read(t, ".") {
				if label != newLabel {
					t.Errorf("%s has the label %q", p, label)
				}
			}
			for _, p := range []string{"..", "../beside", "../beside/a/m", "../beside/a/m/f"} {
				if labelOf(t, p) == newLabel {
					t.Errorf("%s is labelled, which is not in the tree", p)
				}
			}
			if r, err := tree(t.Context(), "f", oldLabel, Options{}, as(m)); err != nil || !r.Complete {
				t.Errorf("a file: %+v, %v", r, err)
			}
			skipped := 0
			r, err = tree(t.Context(), ".", oldLabel, Options{OneFilesystem: true, Trace: &Trace{Skip: func(string, string) { skipped++ }}}, as(m))
			if err != nil || !r.Complete || labelOf(t, "a/m/f") != newLabel || labelOf(t, "a/b/f") != newLabel {
				t.Errorf("one filesystem: %+v, %v", r, err)
			}
		})
	}
}

// TestBeyondPathMaxRefused: what is refused is, and what is left alone is left
// alone and named, where no path tells of it.
func TestBeyondPathMaxRefused(t *testing.T) {
	home, other := mkdir(t, on(t, "tmpfs"), "home"), on(t, "tmpfs")
	beyondPathMax(t, on(t, "tmpfs"), "dir .\ndir a\ndir a/d\nfile a/d/in\ndir dev\ndir sys\nfile f\n")
	left := func(what string, want ...string) {
		t.Helper()
		for engine, m := range engines() {
			for p := range treetest.Read(t, ".") {
				if !strings.HasPrefix(p, "sys") {
					treetest.Set(t, ".", p, oldLabel)
				}
			}
			var named []string
			r, err := tree(t.Context(), ".", newLabel, Options{
				Trace: &Trace{Skip: func(path, _ string) { named = append(named, strings.TrimPrefix(path, "./")) }},
			}, as(m))
			adds(t, r)
			slices.Sort(named)
			if err != nil || !r.Complete || !slices.Equal(named, want) {
				t.Errorf("%s, %s: %+v, %v; %q is left alone, want %q", what, engine, r, err, named, want)
			}
			for p, label := range treetest.Read(t, ".") {
				in := slices.ContainsFunc(want, func(l string) bool { return p == l || strings.HasPrefix(p, l+"/") })
				if in == (label == newLabel) {
					t.Errorf("%s, %s: %s has the label %q", what, engine, p, label)
				}
			}
		}
	}
	t.Setenv("HOME", other)
	left("nothing mounted beneath")
	bind(t, "a/d", other) // the home is a plain directory here
	left("a plain directory", "a/d")
	mkdir(t, home, "shm")
	bind(t, home, "dev")
	mounted(t, "tmpfs", "dev/shm", "")
	writeFile(t, "dev/shm/f")
	mounted(t, "mqueue", "sys", "")
	left("beside mounts", "a/d", "sys")
	t.Setenv("HOME", home)
	left("mounted in it", "dev", "dev/shm", "sys")

	if _, err := Check(t.Context(), "dev", newLabel, nil); !errors.Is(err, ErrRefused) {
		t.Errorf("a refused place: %v", err)
	}
	if r, err := Tree(t.Context(), "dev/shm", newLabel, nil); err != nil || r.Written != 2 {
		t.Errorf("in a refused place: %+v, %v", r, err)
	}
}
