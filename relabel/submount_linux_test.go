// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// mounted mounts a filesystem of that kind over the existing at, until the test
// ends.
func mounted(t *testing.T, kind, at, data string) {
	t.Helper()
	if err := unix.Mount("test", at, kind, 0, data); err != nil {
		if errors.Is(err, unix.ENODEV) {
			treetest.Lack(t, kind, err)
		}
		t.Fatalf("%s: %v", kind, err)
	}
	t.Cleanup(func() {
		treetest.Check(t, unix.Unmount(at, unix.MNT_DETACH))
	})
}

// skips runs every engine on root and holds what is named by Trace.Skip against left,
// paths beneath root, and gives the reasons. Beneath those nothing may be labelled, everything else must.
func skips(t *testing.T, root string, left ...string) (named map[string]string) {
	t.Helper()
	in := func(path string) bool {
		return slices.ContainsFunc(left, func(l string) bool { return path == l || strings.HasPrefix(path, l+"/") })
	}
	for engine, m := range engines() {
		for _, p := range []string{".", "f"} {
			treetest.Set(t, root, p, oldLabel)
		}
		ctx, cancel := context.WithCancel(t.Context())
		named = map[string]string{}
		r, err := tree(ctx, root, newLabel, Options{
			Trace: &Trace{Skip: func(path, why string) { named[strings.TrimPrefix(path, root+"/")] = why }, Change: func(path, _, _ string) {
				if p := strings.TrimPrefix(path, root+"/"); in(p) {
					t.Errorf("%s: labelled %s", engine, p)
					cancel() // spare the machine
				}
			}},
		}, as(m))
		cancel()
		adds(t, r)
		if err != nil || !r.Complete || r.Skipped != int64(len(left)) || len(named) != len(left) {
			t.Errorf("%s: %+v, %v, %v", engine, r, err, named)
		}
		for _, l := range left {
			if named[l] == "" {
				t.Errorf("%s: %s is not named: %v", engine, l, named)
			}
		}
		if labelOf(t, filepath.Join(root, "f")) != newLabel {
			t.Errorf("%s: the rest of the tree is not labelled", engine)
		}
	}
	return named
}

// TestBeneathRefused: what is mounted beneath a place that is never relabelled is
// skipped as that place is, at whatever depth.
func TestBeneathRefused(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir dev\nfile f\n")
	home := mkdir(t, on(t, "tmpfs"), "home")
	mkdir(t, home, "shm")
	mkdir(t, home, "x", "y")
	t.Setenv("HOME", home)
	dev := filepath.Join(root, "dev")
	bind(t, home, dev)
	mounted(t, "tmpfs", filepath.Join(dev, "shm"), "")
	mounted(t, "tmpfs", filepath.Join(dev, "x/y"), "")
	for _, at := range []string{"shm/f", "x/y/f"} {
		writeFile(t, filepath.Join(dev, at))
	}
	skips(t, root, "dev", "dev/shm", "dev/x/y")
	t.Setenv("HOME", "")
	if _, err := Tree(t.Context(), root, newLabel, &Options{Exclude: []string{dev}}); err != nil {
		t.Errorf("excluded instead: %v", err)
	}
}

// TestKernelFilesystems: the kernel's own filesystems are skipped by their
// type, with what is mounted in them, as in a chroot.
func TestKernelFilesystems(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir sys\ndir proc\ndir pts\ndir mq\ndir bpf\nfile f\n")
	mounted(t, "sysfs", filepath.Join(root, "sys"), "")
	mounted(t, "tmpfs", filepath.Join(root, "sys/fs"), "")
	writeFile(t, filepath.Join(root, "sys/fs/f"))
	mounted(t, "proc", filepath.Join(root, "proc"), "")
	mounted(t, "devpts", filepath.Join(root, "pts"), "")
	mounted(t, "mqueue", filepath.Join(root, "mq"), "")
	// What is mounted in sys is also beneath a refused place, and in this is not.
	mounted(t, "bpf", filepath.Join(root, "bpf"), "")
	mounted(t, "tmpfs", mkdir(t, root, "bpf", "d"), "")
	named := skips(t, root, "sys", "sys/fs", "proc", "pts", "mq", "bpf", "bpf/d")
	if !strings.Contains(named["mq"], "mqueue") || !strings.Contains(named["bpf/d"], "bpf") || !strings.Contains(named["sys/fs"], "sys") {
		t.Errorf("%v", named)
	}
}

// TestRefusedInside: a refused place can lie in the tree as a plain directory, by
// another mount of its filesystem. It is skipped with all that is beneath it.
func TestRefusedInside(t *testing.T) {
	for _, kind := range []string{"tmpfs", "ext4", "btrfs", "btrfs subvolume"} {
		t.Run(kind, func(t *testing.T) {
			kind, _, subvolume := strings.Cut(kind, " ")
			root := grow(t, on(t, kind), "default label="+oldLabel+"\ndir .\nfile f\n")
			a := filepath.Join(root, "a")
			if subvolume {
				btrfsSubvolume(t, "create", a)
				treetest.Set(t, a, ".", oldLabel)
			} else {
				mkdir(t, a)
			}
			treetest.Build(t, filepath.Join(a, "d"), treetest.Text(t, "default label="+oldLabel+"\ndir .\ndir m\nfile in\n"))
			home := on(t, "tmpfs")
			bind(t, filepath.Join(root, "a/d"), home)
			t.Setenv("HOME", home)
			skips(t, root, "a/d")
			mounted(t, "tmpfs", filepath.Join(root, "a/d/m"), "")
			skips(t, root, "a/d", "a/d/m")
			t.Setenv("HOME", "")
			treetest.Set(t, root, ".", oldLabel)
			if r, err := Tree(t.Context(), root, newLabel, nil); err != nil || r.Skipped != 0 || labelOf(t, filepath.Join(root, "a/d/in")) != newLabel {
				t.Errorf("with another home: %+v, %v", r, err)
			}
		})
	}
}

// TestMountMoves renames directories above a mount while the root's own mount is
// walked, before what is mounted in it has its turn.
func TestMountMoves(t *testing.T) {
	move := func(t *testing.T, from, to string) {
		t.Helper()
		treetest.Check(t, os.Rename(from, to))
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, root string)
		at     string // where it is afterwards, beneath root; "" if that is not to be labelled
		fails  bool
	}{
		"stays":   {func(*testing.T, string) {}, "a/b/m", false},
		"renamed": {func(t *testing.T, root string) { move(t, root+"/a", root+"/z") }, "z/b/m", false},
		"replaced": {func(t *testing.T, root string) {
			move(t, root+"/a/b", root+"/y")
			mkdir(t, root, "a/b/m")
		}, "y/m", false},
		"replaced by a file": {func(t *testing.T, root string) {
			move(t, root+"/a/b", root+"/y")
			treetest.Check(t, os.WriteFile(root+"/a/b", nil, 0o600))
		}, "y/m", false},
		"root renamed": {func(t *testing.T, root string) {
			move(t, root+"/a/b", root+"/y")
			move(t, root, root+"2")
		}, "../root2/y/m", false},
		"out of the tree": {func(t *testing.T, root string) { move(t, root+"/a/b", filepath.Dir(root)+"/out") }, "", true},
		"moved in the tree": {func(t *testing.T, root string) {
			treetest.Check(t, unix.Mount(root+"/a/b/m", mkdir(t, root, "y"), "", unix.MS_MOVE, ""))
		}, "", true},
		"unmounted": {func(t *testing.T, root string) {
			treetest.Check(t, unix.Unmount(root+"/a/b/m", unix.MNT_DETACH))
		}, "", true},
		"unmounted and removed": {func(t *testing.T, root string) {
			treetest.Check(t, unix.Unmount(root+"/a/b/m", unix.MNT_DETACH), os.Remove(root+"/a/b/m"))
		}, "", false},
		"hidden": {func(t *testing.T, root string) {
			treetest.Check(t, unix.Mount("test", root+"/a", "tmpfs", 0, ""))
		}, "", false},
	} {
		for engine, m := range engines() {
			if m.small {
				continue // a mount that moves before it is met is to a small tree as one that never was
			}
			t.Run(name+"/"+engine, func(t *testing.T) {
				root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir a\ndir a/b\ndir a/b/m\nfile f\n")
				treetest.Must(t, unix.Mount("test", root+"/a/b/m", "tmpfs", 0, ""))
				writeFile(t, root+"/a/b/m/in")
				changed, failed, left := false, []string(nil), int64(0)
				if name == "hidden" {
					left = 1
				}
				r, err := tree(t.Context(), root, newLabel, Options{
					Workers: 1,
					Trace: &Trace{Failure: func(err error) { failed = append(failed, err.Error()) }, Change: func(path, _, _ string) {
						if !changed && path == root+"/f" {
							changed = true
							c.change(t, root)
						}
					}},
				}, as(m))
				adds(t, r)
				if !changed {
					t.Error("nothing was renamed")
				}
				if c.at != "" {
					if err != nil || !r.Complete || labelOf(t, filepath.Join(root, c.at, "in")) != newLabel {
						t.Errorf("%+v, %v", r, err)
					}
				}
				if r.Skipped < left || c.fails != (err != nil) || c.fails == r.Complete || c.fails && (len(failed) != 1 || labelOf(t, root) == newLabel) {
					t.Errorf("%+v, %v; %v", r, err, failed)
				}
			})
		}
	}
}

// TestUnmountedLate: a mount that is unmounted after its walk, and before the commit, shows what it
// hid, which nobody has labelled.
func TestUnmountedLate(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir m1\nfile m1/hidden\ndir m2\n")
	for _, m := range []string{"/m1", "/m2"} {
		treetest.Must(t, unix.Mount("test", root+m, "tmpfs", 0, ""))
		t.Cleanup(func() { _ = unix.Unmount(root+m, unix.MNT_DETACH) })
		writeFile(t, root+m+"/in")
	}
	unmounted := false
	r, err := Tree(t.Context(), root, newLabel, &Options{Trace: &Trace{Change: func(path, _, _ string) {
		if !unmounted && path == root+"/m2/in" {
			unmounted = true
			treetest.Check(t, unix.Unmount(root+"/m1", unix.MNT_DETACH))
		}
	}}})
	adds(t, r)
	if !unmounted || err == nil || r.Complete || labelOf(t, root) == newLabel || !strings.Contains(err.Error(), "unmounted") {
		t.Errorf("unmounted %t: %+v, %v", unmounted, r, err)
	}
}
