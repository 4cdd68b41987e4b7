// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"os"
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
	garbage := filepath.Join(on(t, "tmpfs"), "mountinfo")
	if err := os.WriteFile(garbage, []byte("none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bind(t, garbage, "/proc/self/mountinfo")
	for _, path := range []string{root, file, filepath.Join(root, "l")} {
		for _, depth := range []Trust{TrustRoot, TrustTop} {
			for label, want := range map[string]bool{newLabel: true, oldLabel: false} {
				if got, err := isLabelled(path, label, depth); got != want || err != nil {
					t.Errorf("%s, %s: %t, %v", path, label, got, err)
				}
			}
		}
		if got, err := isInterrupted(path, oldLabel); got || err != nil {
			t.Errorf("%s: %t, %v", path, got, err)
		}
		for _, skip := range []Trust{TrustRoot, TrustTop} {
			if r, err := Tree(t.Context(), path, newLabel, &Options{Trust: skip}); err != nil || !r.Trusted || !r.Complete {
				t.Errorf("%s, %v: %+v, %v", path, skip, r, err)
			}
		}
		if path == root {
			continue
		}
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
	bind(t, garbage, file)
	if _, err := Tree(t.Context(), root, oldLabel, nil); err == nil || !strings.Contains(err.Error(), "mountinfo") || labelOf(t, root) != newLabel {
		t.Errorf("control: without the table a tree is labelled in which something is mounted: %v", err)
	}
}

// BenchmarkManyMounts is what a probe, and a label on one file, take where much is
// mounted.
func BenchmarkManyMounts(b *testing.B) {
	treetest.Need(b, "root")
	dir := b.TempDir()
	if err := unix.Mount("test", dir, "tmpfs", 0, ""); err != nil {
		b.Fatal(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	root, file := filepath.Join(dir, "root"), filepath.Join(dir, "root/file")
	if err := os.Mkdir(root, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	if _, err := Tree(b.Context(), root, newLabel, nil); err != nil {
		b.Fatal(err)
	}
	made := 0
	for _, mounts := range []int{0, 10_000} {
		for ; made < mounts; made++ {
			at := filepath.Join(dir, fmt.Sprintf("m%05d", made))
			if err := os.Mkdir(at, 0o755); err != nil {
				b.Fatal(err)
			}
			if err := unix.Mount(root, at, "", unix.MS_BIND, ""); err != nil {
				b.Fatal(err)
			}
		}
		run := func(name string, call func() error) {
			b.Run(fmt.Sprintf("mounts=%d/call=%s", mounts, name), func(b *testing.B) {
				for b.Loop() {
					if err := call(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("Labelled", func() error { _, err := isLabelled(root, newLabel, TrustRoot); return err })
		run("Labelled-not", func() error { _, err := isLabelled(root, oldLabel, TrustRoot); return err })
		run("Chcon", func() error { return Chcon(file, newLabel, false) })
		run("Tree-skips", func() error { _, err := Tree(b.Context(), root, newLabel, &Options{Trust: TrustRoot}); return err })
	}
}
