// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Attr is the attribute that holds the label.
const Attr = "security.selinux"

// Build makes the tree in dir, which is made if it is missing. Each entry is
// made by a descriptor of its directory, so paths may pass PATH_MAX.
// At the end of the test whatever is mounted below dir is detached, the last
// first. A tree with mounts needs Main.
func Build(t testing.TB, dir string, tr *Tree) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(tr.Entries, func(e Entry) bool { return e.Kind == Mount }) {
		Need(t, "root")
		t.Cleanup(func() { Check(t, detachBelow(dir)) })
	}
	for _, e := range tr.Entries {
		if err := create(dir, e); err != nil {
			if errors.Is(err, unix.EINVAL) && Policed() {
				Need(t, "plain") // it is to have what is no context
			}
			t.Fatalf("%s:%d: build %s: %v", tr.Name, e.line, short(e.Path), err)
		}
	}
	for _, e := range tr.Entries {
		if !e.ReadOnly {
			continue
		}
		flags := uintptr(unix.MS_REMOUNT | unix.MS_RDONLY)
		if e.FS == "bind" {
			flags |= unix.MS_BIND
		}
		if err := unix.Mount("", filepath.Join(dir, e.Path), "", flags, ""); err != nil {
			t.Fatalf("%s:%d: turn %s read-only: %v", tr.Name, e.line, short(e.Path), err)
		}
	}
}

// place gives a short path of the entry p below root, by a descriptor of its directory, which
// leave closes.
func place(root, p string) (at string, leave func(), err error) {
	dir, name := path.Split(p)
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for err == nil && dir != "" {
		cut := len(dir)
		if cut > unix.PathMax/2 { // and a name is no longer than 255
			cut = strings.LastIndexByte(dir[:unix.PathMax/2], '/') + 1
		}
		up := fd
		fd, err = unix.Openat(up, dir[:cut], unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		_ = unix.Close(up) // an O_PATH descriptor has nothing to lose
		dir = dir[cut:]
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", fd, name), func() { _ = unix.Close(fd) }, os.NewSyscallError("open its directory", err)
}

// modes are the kinds as the kernel knows them.
var modes = map[Kind]uint32{
	Dir: unix.S_IFDIR, File: unix.S_IFREG, Link: unix.S_IFLNK, Fifo: unix.S_IFIFO,
	Socket: unix.S_IFSOCK, Char: unix.S_IFCHR, Block: unix.S_IFBLK,
}

// create makes one entry below root with its mode and label.
func create(root string, e Entry) error {
	at, leave, err := place(root, e.Path)
	if err != nil {
		return err
	}
	defer leave()
	target := filepath.Join(root, e.Target)
	kind, source, flags := e.Kind, e.FS, uintptr(0)
	if e.FS == "bind" {
		source, flags = target, unix.MS_BIND
	}
	if kind == Mount { // the place to mount on, which may be there
		kind = Dir
		if to, err := os.Lstat(target); e.FS == "bind" && err == nil && !to.IsDir() {
			kind = File
		}
	}
	switch kind {
	case Dir:
		if e.Path != "." {
			err = unix.Mkdir(at, 0o755)
		}
	case Link:
		err = unix.Symlink(e.Target, at)
	case Hardlink:
		err = unix.Link(target, at)
	default:
		err = unix.Mknod(at, modes[kind]|0o644, int(unix.Mkdev(e.Major, e.Minor)))
	}
	if err != nil && (err != unix.EEXIST || e.Kind != Mount && !e.implied) { // implied: it is there through a bind mount
		return os.NewSyscallError("make it", err)
	}
	if e.Kind == Mount {
		if err := unix.Mount(source, at, e.FS, flags, Bare(e.FS)); err != nil {
			return os.NewSyscallError("mount", err)
		}
	}
	if e.HasMode {
		if err := unix.Chmod(at, e.Mode); err != nil {
			return os.NewSyscallError("chmod", err)
		}
	}
	if e.Label.Says == Given {
		return os.NewSyscallError("lsetxattr", unix.Lsetxattr(at, Attr, []byte(e.Label.Raw), 0))
	}
	return nil
}

// Bare are the options with which a filesystem that has no labels is mounted.
// ramfs is one, but where SELinux is on only if one label is given to the whole.
func Bare(filesystem string) string {
	if filesystem == "ramfs" && Policed() {
		return "context=system_u:object_r:user_home_t:s0"
	}
	return ""
}
