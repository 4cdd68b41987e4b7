// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// proc is what the engine takes from /proc before it opens the root, so that
// no path is looked up afterwards.
type proc struct {
	fds    int // /proc/self/fd
	infos  int // /proc/self/fdinfo
	cwd    int // the working directory, for threads that left it
	mounts []mountEntry
}

func openProc() (*proc, error) {
	const where = "/proc/self/fd"
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(where), sys.OpenRead|sys.OpenDir, 0)
	if e != 0 {
		return nil, pathError("openat", where, e)
	}
	// Over a bind mount or a FUSE filesystem in its place every answer could
	// be somebody's invention.
	if kind, e := sys.FSType(fd); e != 0 || kind != sys.Proc {
		sys.Close(fd)
		if e == 0 {
			return nil, &fs.PathError{Op: "fstatfs", Path: where, Err: fmt.Errorf("not a proc filesystem")}
		}
		return nil, pathError("fstatfs", where, e)
	}
	p := &proc{fds: fd, infos: -1}
	if p.cwd, e = sys.Openat(sys.AtFdcwd, sys.Cname("."), sys.OpenPath, 0); e != 0 {
		sys.Close(fd)
		return nil, pathError("openat", ".", e)
	}
	if p.infos, e = sys.Openat(fd, sys.Cname("../fdinfo"), sys.OpenRead|sys.OpenDir, 0); e != 0 {
		p.close()
		return nil, pathError("openat", "/proc/self/fdinfo", e)
	}
	var err error
	if p.mounts, err = p.table(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// table reads the table of mounts as it is now.
func (p *proc) table() ([]mountEntry, error) {
	fd, e := sys.Openat(p.fds, sys.Cname("../mountinfo"), sys.OpenRead, 0)
	if e != 0 {
		return nil, pathError("openat", "/proc/self/mountinfo", e)
	}
	f := os.NewFile(uintptr(fd), "/proc/self/mountinfo")
	defer f.Close() // only read
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return parseMountinfo(string(text))
}

func (p *proc) close() {
	sys.Close(p.cwd)
	sys.Close(p.infos)
	sys.Close(p.fds)
}

// mountOf tells which mount fd stands in: by a call, or where the filesystem
// has no handles, which that call wants, from the text in fdinfo.
func (p *proc) mountOf(fd int) (uint64, sys.Errno) {
	id, e := sys.Fmount(fd)
	if e != syscall.ENOTSUP {
		return id, e
	}
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

// path is where the kernel says that fd lies now.
func (p *proc) path(fd int) (string, sys.Errno) {
	buf := make([]byte, 4096) // the kernel prints no more than a page
	n, e := sys.Readlinkat(p.fds, sys.Cname(strconv.Itoa(fd)), buf)
	if e != 0 {
		return "", e
	}
	return string(buf[:n]), 0
}

// mount finds the line of mountinfo for a mount id.
func (p *proc) mount(id uint64) *mountEntry { return mountByID(p.mounts, id) }

// over finds the mount in which path lies, which has no link in it.
func (p *proc) over(path string) (found *mountEntry) {
	for i, m := range p.mounts {
		if path == m.point || strings.HasPrefix(path, strings.TrimSuffix(m.point, "/")+"/") {
			if found == nil || len(m.point) >= len(found.point) {
				found = &p.mounts[i]
			}
		}
	}
	return found
}

// kernels finds the kernel's own filesystem that m is, or lies in, beneath the
// mount top; nil if there is none. What an automount has mounted on itself is not
// the kernel's.
func (p *proc) kernels(m mountEntry, top uint64) *mountEntry {
	if m.kernels() {
		return &m
	}
	for at := p.mount(m.parent); at != nil && at.id != top && at.id != at.parent; at = p.mount(at.parent) {
		if at.kernels() && at.fstype != "autofs" {
			return at
		}
	}
	return nil
}

func pathError(op, path string, e sys.Errno) *fs.PathError {
	return &fs.PathError{Op: op, Path: path, Err: e}
}
