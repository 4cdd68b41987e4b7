// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// plain is a small tree that has the old label: 46 entries.
const plain = "default label=" + oldLabel + `
dir .
file f%02d x20
dir d
file d/f%02d x20
dir d/e
file d/e/f
link l nowhere
fifo p
`

// adds checks that each entry counts once (contract point 3).
func adds(t *testing.T, r Report) {
	t.Helper()
	if r.Seen != r.Written+r.Right+r.Vanished+r.Skipped+r.Failed {
		t.Errorf("the counts do not add up: %+v", r)
	}
}

// bearing gives the entries beneath root that have label.
func bearing(t *testing.T, root, label string) (paths []string) {
	t.Helper()
	for p, l := range treetest.Read(t, root) {
		if l == label {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}

// labelOf is one entry's label without a trailing NUL.
func labelOf(t *testing.T, path string) string {
	t.Helper()
	return secctx.Trim(treetest.Snapshot(t, path)[path].Label)
}

func pathOf(err error) string {
	if where := (*fs.PathError)(nil); errors.As(err, &where) {
		return where.Path
	}
	return ""
}

// immutable sets or clears the flag of the file at path, and clears it in the end.
func immutable(t *testing.T, path string, on bool) {
	t.Helper()
	set := func(on bool) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd) // only read
		flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		if err != nil {
			return err
		}
		const fsImmutable = 0x10 // FS_IMMUTABLE_FL of linux/fs.h
		if flags &^= fsImmutable; on {
			flags |= fsImmutable
		}
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags)
	}
	treetest.Must(t, set(on))
	if on {
		t.Cleanup(func() {
			treetest.Check(t, set(false))
		})
	}
}

// TestImmutableRoot: a root that can be neither sealed nor labelled ends the run before the first
// change: its label would be trusted for what is gone.
func TestImmutableRoot(t *testing.T) {
	root := grow(t, on(t, "ext4"), plain)
	treetest.Must(t, Chcon(root, oldLabel, true))
	immutable(t, root, true)
	r, err := Tree(t.Context(), root, newLabel, nil)
	if !errors.Is(err, syscall.EPERM) || pathOf(err) != root || r.Complete || r.Written != 0 || len(bearing(t, root, oldLabel)) != 46 {
		t.Errorf("%+v, %v; %d have the old label", r, err, len(bearing(t, root, oldLabel)))
	}
}

// TestFailureSeals: one entry cannot be written, and neither label may say
// otherwise, whether the root was right before or not.
func TestFailureSeals(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs", "btrfs"} {
		for _, from := range []string{oldLabel, newLabel} {
			t.Run(fmt.Sprintf("%s from %s", kind, from[len(from)-2:]), func(t *testing.T) {
				root := grow(t, on(t, kind), plain)
				treetest.Set(t, root, ".", from)
				stuck := filepath.Join(root, "d", "f07")
				immutable(t, stuck, true)
				for range 2 { // the second finds its own seal
					var told []string
					r, err := Tree(t.Context(), root, newLabel, &Options{Trace: &Trace{Failure: func(err error) { told = append(told, pathOf(err)) }}})
					adds(t, r)
					if !errors.Is(err, syscall.EPERM) || !strings.Contains(err.Error(), "chattr -i") || pathOf(err) != stuck || !slices.Equal(told, []string{stuck}) {
						t.Fatalf("%v, told %v", err, told)
					}
					if r.Complete || r.Failed != 1 || r.Seen != 46 {
						t.Errorf("%+v", r)
					}
					if l := labelOf(t, root); !secctx.IsSeal(l, newLabel) || l == oldLabel || l == newLabel {
						t.Errorf("the root has %s", l)
					}
					if n := len(bearing(t, root, newLabel)); n != 44 {
						t.Errorf("%d others are labelled", n)
					}
				}
				for label, want := range map[string]bool{newLabel: true, oldLabel: false} {
					if is, err := isInterrupted(root, label); err != nil || is != want {
						t.Errorf("Interrupted(%s) is %t, %v", label, is, err)
					}
					if ok, err := isLabelled(root, label, SkipRoot); err != nil || ok {
						t.Errorf("Labelled(%s) is %t, %v", label, ok, err)
					}
				}
				immutable(t, stuck, false)
				r, err := Tree(t.Context(), root, newLabel, &Options{Skip: SkipRoot, Exact: true})
				adds(t, r)
				if err != nil || !r.Complete || r.Trusted || r.Written != 2 || r.Right != 44 || r.Interrupted != newLabel {
					t.Errorf("%+v, %v", r, err)
				}
				if n := len(bearing(t, root, newLabel)); n != 46 {
					t.Errorf("%d entries are labelled", n)
				}
			})
		}
	}
}
