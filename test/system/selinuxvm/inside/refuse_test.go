// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestUnknown: a label that the loaded policy does not know is told in one
// sentence, and nothing has changed: no seal either, whose user the policy does
// know.
func TestUnknown(t *testing.T) {
	for name, unknown := range map[string]string{
		"type":  "system_u:object_r:no_such_t:s0",
		"user":  "nobody_u:object_r:container_file_t:s0",
		"role":  "system_u:no_such_r:container_file_t:s0",
		"level": "system_u:object_r:container_file_t:s3",
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, dir string) {
				root := grow(t, dir)
				before := treetest.Read(t, root)
				out := strings.TrimSpace(label(t, 1, "--label", unknown, root))
				if !strings.Contains(out, "policy does not know the label "+unknown) || strings.Contains(out, "\n") {
					t.Errorf("told: %s", out)
				}
				unchanged(t, root, before)
			})
		})
	}
}

// mount mounts, and unmounts at the end of the test.
func mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		t.Fatalf("mount %s: %v", target, err)
	}
	t.Cleanup(func() {
		treetest.Check(t, unix.Unmount(target, unix.MNT_DETACH))
	})
}

// TestRefused: mounts to which the kernel gives labels itself have no others,
// and read-only ones none that they do not have.
func TestRefused(t *testing.T) {
	t.Run("context", func(t *testing.T) {
		dir := t.TempDir()
		mount(t, "tmpfs", dir, "tmpfs", 0, `context="`+shared+`"`)
		treetest.Must(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o644))
		told(t, label(t, 3, "--label", labelA, dir), "context=")
		if got := labelOf(t, dir); got != shared {
			t.Errorf("the root has %s", got)
		}
	})
	t.Run("nested context", func(t *testing.T) {
		root := grow(t, fresh(t, "ext4"))
		mount(t, "tmpfs", mkdir(t, root, "nested"), "tmpfs", 0, `context="`+shared+`"`)
		told(t, label(t, 0, "--label", labelA, root), "skipped: mounted with context=")
		if got := labelOf(t, filepath.Join(root, "nested")); got != shared {
			t.Errorf("the mount has %s", got)
		}
		may(t, true, domainA, filepath.Join(root, "a/b/c/deep"))
	})
	t.Run("overlay context", func(t *testing.T) {
		dir := fresh(t, "ext4")
		lower, root := grow(t, dir), mkdir(t, dir, "root")
		before := treetest.Read(t, lower)
		overlay(t, dir, lower, root, `,context="`+shared+`"`)
		told(t, label(t, 3, "--label", labelA, root), "context=")
		unchanged(t, lower, before)
	})
	// These do not give every file one label: files keep theirs.
	for name, o := range map[string]struct {
		flags uintptr
		data  string
	}{
		"nosuid": {unix.MS_NOSUID, ""}, "rootcontext": {0, `rootcontext="` + shared + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mount(t, "tmpfs", dir, "tmpfs", o.flags, o.data)
			treetest.Must(t, os.Chmod(dir, 0o755))
			root := grow(t, dir)
			label(t, 0, "--label", labelA, root)
			all(t, root, labelA)
		})
	}
	t.Run("read-only", func(t *testing.T) {
		each(t, func(t *testing.T, dir string) {
			root := grow(t, dir)
			bind := mkdir(t, dir, "bind")
			mount(t, root, bind, "", unix.MS_BIND, "")
			treetest.Must(t, unix.Mount("", bind, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
			before := treetest.Read(t, root)
			told(t, label(t, 3, "--label", labelA, bind), "read-only")
			unchanged(t, root, before)
		})
	})
}

// told fails the test unless the output has all the words.
func told(t *testing.T, out, word string, more ...string) {
	t.Helper()
	t.Log(strings.TrimSpace(out))
	for _, word := range append(more, word) {
		if strings.TrimSpace(out) == "" || !strings.Contains(out, word) {
			t.Errorf("no %q in %q", word, out)
		}
	}
}

// TestOverlay: labels on an overlay go to its upper layer, and a container
// reads what it may.
func TestOverlay(t *testing.T) {
	each(t, func(t *testing.T, dir string) {
		lower, root := grow(t, dir), mkdir(t, dir, "root")
		before := treetest.Read(t, lower)
		overlay(t, dir, lower, root, "")
		may(t, false, domainA, filepath.Join(root, "top"))
		label(t, 0, "--label", labelA, root)
		all(t, root, labelA)
		may(t, true, domainA, filepath.Join(root, "top"))
		may(t, true, domainA, filepath.Join(root, "a/b/c/deep"))
		may(t, false, domainB, filepath.Join(root, "top"))
		unchanged(t, lower, before)
	})
}

// overlay mounts an overlay of lower at root, with the rest of it in dir.
func overlay(t *testing.T, dir, lower, root, options string) {
	t.Helper()
	mount(t, "overlay", root, "overlay", 0, "lowerdir="+lower+",upperdir="+mkdir(t, dir, "upper")+",workdir="+mkdir(t, dir, "work")+options)
}

// TestIdmapped: on an idmapped mount, as runtimes make for pods with a user namespace, all is
// labelled but what belongs to somebody whom the map does not have: that the kernel refuses, it is
// named, and the volume is not done.
func TestIdmapped(t *testing.T) {
	eachOf(t, []string{"ext4", "xfs"}, func(t *testing.T, dir string) {
		root, at := grow(t, dir), mkdir(t, dir, "mapped")
		treetest.Must(t, os.Lchown(filepath.Join(root, "top"), 7, 7))
		user := exec.Command("sleep", "infinity")
		ids := []syscall.SysProcIDMap{{HostID: 100_000, Size: 1000}}
		user.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids}
		treetest.Must(t, user.Start())
		defer func() { _ = user.Process.Kill(); _ = user.Wait() }()
		ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", user.Process.Pid))
		treetest.Must(t, err)
		defer ns.Close()
		fd, err := unix.OpenTree(unix.AT_FDCWD, root, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		treetest.Must(t, err)
		defer unix.Close(fd)
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())}
		treetest.Must(t, unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr))
		treetest.Must(t, unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH))
		t.Cleanup(func() { treetest.Check(t, unix.Unmount(at, unix.MNT_DETACH)) })
		var st unix.Stat_t
		if treetest.Must(t, unix.Stat(filepath.Join(at, "top"), &st)); st.Uid != 100_007 {
			t.Fatalf("the mount is not mapped: %d", st.Uid)
		}
		label(t, 0, "--label", labelA, at)
		all(t, root, labelA)
		treetest.Must(t, os.Lchown(filepath.Join(root, "top"), 5000, 5000))
		told(t, label(t, 1, "--label", labelB, at), "/mapped/top\": ", "setxattr", ": operation not permitted") // or lsetxattr, or setxattrat
		if has := labelOf(t, filepath.Join(root, "top")); has != labelA || labelOf(t, filepath.Join(root, "a/b/c/deep")) != labelB {
			t.Errorf("what belongs to a stranger has %s", has)
		}
		label(t, 4, "probe", "--label", labelB, at)
	})
}

// unchanged fails the test if labels below root are others than before.
func unchanged(t *testing.T, root string, before map[string]string) {
	t.Helper()
	if diff := treetest.Diff(before, treetest.Read(t, root)); diff != nil {
		t.Errorf("changed:\n%s", strings.Join(diff, "\n"))
	}
}

// TestAlias: the policy has another name for container_file_t. The kernel takes
// it and prints the type's own, which is what is then compared.
func TestAlias(t *testing.T) {
	const alias = "system_u:object_r:svirt_lxc_file_t:s0:c1,c2"
	if got, err := ask(t, alias); err != nil || got != labelA {
		t.Fatalf("%s is %q to the kernel, not %s: %v", alias, got, labelA, err)
	}
	each(t, func(t *testing.T, dir string) {
		root := grow(t, dir)
		label(t, 0, "--label", alias, root)
		all(t, root, labelA)
		may(t, true, domainA, filepath.Join(root, "a/b/c/deep"))
		label(t, 0, "probe", "--label", alias, root)
		told(t, label(t, 0, "--json", "--label", alias, root), `"written":0`)
	})
}
