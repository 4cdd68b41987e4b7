// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestWithoutTable: a probe, a label on one file, a run that skips what is right and,
// where the kernel tells that nothing is mounted there (Linux 6.8), any run do not read
// the table of mounts, which is as long as the machine has mounts. It is made unreadable.
func TestWithoutTable(t *testing.T) {
	treetest.Need(t, "root", "plain")
	root := grow(t, on(t, "tmpfs"), "default label="+newLabel+"\ndir .\ndir d\nfile f\nlink l f\n")
	file := filepath.Join(root, "f")
	bind(t, "/proc/version", "/proc/self/mountinfo")
	for _, skip := range []Skip{SkipRoot, SkipTop} {
		for label, want := range map[string]bool{newLabel: true, oldLabel: false} {
			if got, err := isLabelled(root, label, skip); got != want || err != nil {
				t.Errorf("%s: %t, %v", label, got, err)
			}
		}
		if r, err := Tree(t.Context(), root, newLabel, &Options{Skip: skip}); err != nil || !r.Trusted || !r.Complete {
			t.Errorf("%v: %+v, %v", skip, r, err)
		}
	}
	for _, path := range []string{file, filepath.Join(root, "l")} {
		if err := Chcon(path, oldLabel, false); err != nil || labelOf(t, path) != oldLabel {
			t.Errorf("%s: %v", path, err)
		}
		if r, err := Tree(t.Context(), path, newLabel, nil); err != nil || r.Written != 1 {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
	}
	if _, _, e := unix.Syscall(unix.SYS_LISTMOUNT, 0, 0, 0); e != unix.ENOSYS {
		for _, label := range []string{oldLabel, newLabel} {
			if r, err := Tree(t.Context(), root, label, nil); err != nil || r.Written != 4 || labelOf(t, file) != label {
				t.Errorf("%s: %+v, %v", label, r, err)
			}
		}
	}
	bind(t, "/proc/version", file)
	if _, err := Tree(t.Context(), root, oldLabel, nil); err == nil || !strings.Contains(err.Error(), "mountinfo") || labelOf(t, root) == oldLabel {
		t.Errorf("control: without the table a tree is labelled in which something is mounted: %v", err)
	}
}
