// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// Proc is what the engine takes from /proc.
type Proc struct {
	Self      int  // /proc/self
	NoSELinux bool // the kernel has none
	// What follows is there after Learn: the working directory, for threads that
	// left it, the table if it tells anything of the root, and whether the kernel goes
	// by labels.
	Cwd     int
	Mounts  []mountinfo.Mount
	SELinux bool

	infos int // /proc/self/fdinfo, once it is asked for
	once  sync.Once
	fds   int         // /proc/self/fd
	mute  atomic.Bool // statx does not tell the mount's id
}

// OpenProc opens /proc.
func OpenProc() (*Proc, error) {
	p := &Proc{Self: -1, infos: -1, fds: -1, Cwd: -1}
	var err error
	if p.Self, err = openGenuine(sys.AtFdcwd, "/proc/self/", "/proc/self/"); err != nil { // a link
		return nil, err
	}
	// What is labelled by its descriptor is labelled through this directory.
	if p.fds, err = openGenuine(p.Self, "fd", "/proc/self/fd"); err != nil {
		p.Close()
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

// Learn reads the table of mounts, which takes time for each mount of the machine,
// and where among them the root lies. It refuses a root that cannot have a label of
// its own. A probe, a label on one file, or a root in whose mount nothing is mounted
// does without.
func (p *Proc) Learn(root *Mount, b Bounds) error {
	var e sys.Errno
	if p.Cwd, e = sys.Openat(sys.AtFdcwd, sys.Cname("."), sys.OpenPath, 0); e != 0 {
		return pathError("openat", ".", e)
	}
	if p.bare(root, b) {
		if root.Real, e = p.where(root, nil); e != 0 {
			return pathError("readlinkat", root.Path, e)
		}
		return nil
	}
	for try := 0; ; try++ {
		was, _ := p.path(root.At)
		var err error
		if p.Mounts, err = p.ReadTable(); err != nil {
			return err
		}
		root.Real, e = p.where(root, p.Mounts)
		if is, _ := p.path(root.At); is != was {
			e = syscall.EAGAIN // renamed: the table may name what is beneath it by either path
		}
		if e != syscall.EAGAIN || try == tries {
			break
		}
		pause(try)
	}
	if e != 0 {
		return pathError("readlinkat", root.Path, e)
	}
	p.SELinux = mountinfo.SELinux(p.Mounts)
	if info := p.ByID(root.Stat.Mount); info != nil {
		if why := info.Unlabelable(p.SELinux); why != "" {
			return &fs.PathError{Op: "relabel", Path: root.Path, Err: fmt.Errorf("%w: %s", syscall.ENOTSUP, why)}
		}
	}
	return nil
}

// bare says that nothing is mounted in root's mount, entries of which have labels of
// their own, and no refused place lies in its filesystem: then the table would tell no
// more. A thousand volumes on a node with two thousand mounts took 5 s to read it, 5 ms
// each, and 0.1 s to be asked this. It is false where the kernel does not tell.
func (p *Proc) bare(root *Mount, b Bounds) bool {
	m, e := sys.MountOf(root.At)
	if e != 0 || m.FSType == sys.Overlay || mountinfo.HasOption(m.Options, "context") {
		return false
	}
	selinux := mountinfo.HasOption(m.Options, "seclabel")
	if !selinux && !p.NoSELinux {
		return false
	}
	for id := range b.Refused {
		if id.Dev == root.Stat.Dev {
			return false
		}
	}
	has, e := sys.HasMounts(m.ID)
	p.SELinux = selinux
	return e == 0 && !has
}

// ReadTable reads the table of mounts as it is now.
func (p *Proc) ReadTable() ([]mountinfo.Mount, error) {
	text, err := p.read("mountinfo")
	if err != nil {
		return nil, err
	}
	return mountinfo.Parse(text)
}

// read reads the file name of /proc/self.
func (p *Proc) read(name string) (string, error) {
	where := "/proc/self/" + name
	fd, e := sys.Openat(p.Self, sys.Cname(name), sys.OpenRead, 0)
	if e != 0 {
		return "", pathError("openat", where, e)
	}
	f := os.NewFile(uintptr(fd), where)
	defer f.Close() // only read
	var text bytes.Buffer
	text.Grow(8192) // a reading gives a page at most
	_, err := text.ReadFrom(f)
	return text.String(), err
}

// Close closes what OpenProc and Learn have opened.
func (p *Proc) Close() {
	for _, fd := range [...]int{p.Self, p.infos, p.fds, p.Cwd} {
		if fd >= 0 {
			sys.Close(fd)
		}
	}
}

// MountOf tells which mount fd stands in: by a call, or where the kernel has none, a
// seccomp profile refuses them or the filesystem has no handles, from the text in
// fdinfo.
func (p *Proc) MountOf(fd int) (uint64, sys.Errno) {
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
	p.once.Do(func() { p.infos, _ = sys.Openat(p.Self, sys.Cname("fdinfo"), sys.OpenDir, 0) }) // EBADF below
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

// ByID finds the line of mountinfo for a mount id.
func (p *Proc) ByID(id uint64) *mountinfo.Mount { return mountinfo.ByID(p.Mounts, id) }

// over finds the mount in which path lies, which has no link in it.
func (p *Proc) over(path string) (found *mountinfo.Mount) {
	for i, m := range p.Mounts {
		if path == m.Point || strings.HasPrefix(path, strings.TrimSuffix(m.Point, "/")+"/") {
			if found == nil || len(m.Point) >= len(found.Point) {
				found = &p.Mounts[i]
			}
		}
	}
	return found
}

// kernels finds the kernel's own filesystem that m is, or lies in, beneath the
// mount top; nil if there is none. What an automount has mounted on itself is not
// the kernel's.
func (p *Proc) kernels(m mountinfo.Mount, top uint64) *mountinfo.Mount {
	if m.Kernels() {
		return &m
	}
	for at := p.ByID(m.Parent); at != nil && at.ID != top && at.ID != at.Parent; at = p.ByID(at.Parent) {
		if at.Kernels() && at.FSType != "autofs" {
			return at
		}
	}
	return nil
}

func pathError(op, path string, e sys.Errno) *fs.PathError {
	return &fs.PathError{Op: op, Path: path, Err: e}
}

// tries bounds how often a mount that moves is looked up again.
const tries = 8

// pause waits before try number try+1: 1 ms, 2, 4 …
func pause(try int) { time.Sleep(time.Millisecond << try) }
