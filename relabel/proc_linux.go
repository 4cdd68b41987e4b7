// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// proc is what the engine takes from /proc. The directory is opened before the
// root; no path is looked up afterwards.
type proc struct {
	self   int // /proc/self
	infos  int // /proc/self/fdinfo, once it is asked for
	once   sync.Once
	fds    int               // /proc/self/fd
	cwd    int               // the working directory, for threads that left it; from here on by learn
	mounts []mountinfo.Mount // the table
	mute   atomic.Bool       // statx does not tell the mount's id
}

func openProc() (*proc, error) {
	p := &proc{self: -1, infos: -1, fds: -1, cwd: -1}
	var err error
	if p.self, err = openGenuine(sys.AtFdcwd, "/proc/self/", "/proc/self/"); err != nil { // a link
		return nil, err
	}
	// What is labelled by its descriptor is labelled through this directory.
	if p.fds, err = openGenuine(p.self, "fd", "/proc/self/fd"); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// openGenuine opens a directory of /proc. Over a bind mount or a FUSE filesystem in
// its place every answer could be an invention. That there is none must not be taken
// for a root that is gone.
func openGenuine(dir int, name, where string) (int, error) {
	fd, e := sys.Openat(dir, sys.Cname(name), sys.OpenRead|sys.OpenDir, 0)
	if e == syscall.ENOENT {
		return -1, &fs.PathError{Op: "openat", Path: where, Err: fmt.Errorf("no proc filesystem is mounted on /proc")}
	}
	if e != 0 {
		return -1, pathError("openat", where, e)
	}
	kind, e := sys.FSType(fd)
	switch {
	case e != 0:
		sys.Close(fd)
		return -1, pathError("fstatfs", where, e)
	case kind != sys.Proc:
		sys.Close(fd)
		return -1, &fs.PathError{Op: "fstatfs", Path: where, Err: fmt.Errorf("not a proc filesystem")}
	}
	return fd, nil
}

// learn reads the table of mounts, which takes time for each mount of the machine,
// and where among them the root lies. A probe, or a label on one file, does without.
func (p *proc) learn(root *root) error {
	var e sys.Errno
	if p.cwd, e = sys.Openat(sys.AtFdcwd, sys.Cname("."), sys.OpenPath, 0); e != 0 {
		return pathError("openat", ".", e)
	}
	for try := 0; ; try++ {
		was, _ := p.path(root.fd)
		var err error
		if p.mounts, err = p.table(); err != nil {
			return err
		}
		root.real, e = p.where(root, p.mounts)
		if is, _ := p.path(root.fd); is != was {
			e = syscall.EAGAIN // renamed: the table may name what is beneath it by either path
		}
		if e != syscall.EAGAIN || try == tries {
			break
		}
		pause(try)
	}
	if e != 0 {
		return pathError("readlinkat", root.path, e)
	}
	return nil
}

// table reads the table of mounts as it is now.
func (p *proc) table() ([]mountinfo.Mount, error) {
	text, err := p.read("mountinfo")
	if err != nil {
		return nil, err
	}
	return mountinfo.Parse(text)
}

// read reads the file name of /proc/self.
func (p *proc) read(name string) (string, error) {
	where := "/proc/self/" + name
	fd, e := sys.Openat(p.self, sys.Cname(name), sys.OpenRead, 0)
	if e != 0 {
		return "", pathError("openat", where, e)
	}
	f := os.NewFile(uintptr(fd), where)
	defer f.Close() // only read
	text, err := io.ReadAll(f)
	return string(text), err
}

func (p *proc) close() {
	for _, fd := range [...]int{p.self, p.infos, p.fds, p.cwd} {
		if fd >= 0 {
			sys.Close(fd)
		}
	}
}

// mountOf tells which mount fd stands in: by a call, or where the kernel has none, a
// seccomp profile refuses them or the filesystem has no handles, from the text in
// fdinfo.
func (p *proc) mountOf(fd int) (uint64, sys.Errno) {
	if !p.mute.Load() {
		id, e := sys.Fmount(fd)
		if !cannotTell(e) {
			return id, e
		}
		p.mute.Store(true)
	}
	if id, e := sys.FmountByHandle(fd); !cannotTell(e) {
		return id, e
	}
	p.once.Do(func() { p.infos, _ = sys.Openat(p.self, sys.Cname("fdinfo"), sys.OpenDir, 0) }) // EBADF below
	info, e := sys.Openat(p.infos, sys.Cname(strconv.Itoa(fd)), sys.OpenRead, 0)
	if e != 0 {
		return 0, e
	}
	f := os.NewFile(uintptr(info), "fdinfo")
	defer f.Close() // only read
	text := make([]byte, 512)
	n, _ := f.Read(text) // what is missing is missed below
	for line := range strings.Lines(string(text[:n])) {
		if value, is := strings.CutPrefix(line, "mnt_id:"); is {
			if id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64); err == nil {
				return id, 0
			}
		}
	}
	return 0, syscall.ENOTSUP
}

// cannotTell reports whether e says that the call for a mount's id is not to be had
// here, rather than that something went wrong.
func cannotTell(e sys.Errno) bool {
	switch e {
	case syscall.ENOSYS, syscall.EPERM, syscall.EACCES, // a seccomp profile, or a policy
		syscall.ENOTSUP: // no handles on this filesystem
		return true
	}
	return false
}

// mount finds the line of mountinfo for a mount id.
func (p *proc) mount(id uint64) *mountinfo.Mount { return mountinfo.ByID(p.mounts, id) }

// over finds the mount in which path lies, which has no link in it.
func (p *proc) over(path string) (found *mountinfo.Mount) {
	for i, m := range p.mounts {
		if path == m.Point || strings.HasPrefix(path, strings.TrimSuffix(m.Point, "/")+"/") {
			if found == nil || len(m.Point) >= len(found.Point) {
				found = &p.mounts[i]
			}
		}
	}
	return found
}

// kernels finds the kernel's own filesystem that m is, or lies in, beneath the
// mount top; nil if there is none. What an automount has mounted on itself is not
// the kernel's.
func (p *proc) kernels(m mountinfo.Mount, top uint64) *mountinfo.Mount {
	if m.Kernels() {
		return &m
	}
	for at := p.mount(m.Parent); at != nil && at.ID != top && at.ID != at.Parent; at = p.mount(at.Parent) {
		if at.Kernels() && at.FSType != "autofs" {
			return at
		}
	}
	return nil
}

func pathError(op, path string, e sys.Errno) *fs.PathError {
	return &fs.PathError{Op: op, Path: path, Err: e}
}
