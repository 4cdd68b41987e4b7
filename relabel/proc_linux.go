// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// proc is what the engine takes from /proc before it opens the root, so that
// no path is looked up afterwards.
type proc struct {
	fds    int // /proc/self/fd
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
	if real, e := sys.IsProc(fd); e != 0 || !real {
		sys.Close(fd)
		if e == 0 {
			return nil, &fs.PathError{Op: "fstatfs", Path: where, Err: fmt.Errorf("not a proc filesystem")}
		}
		return nil, pathError("fstatfs", where, e)
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err == nil {
		var all []mountEntry
		if all, err = parseMountinfo(string(text)); err == nil {
			return &proc{fds: fd, mounts: all}, nil
		}
	}
	sys.Close(fd)
	return nil, err
}

func (p *proc) close() { sys.Close(p.fds) }

// path is where the kernel says that fd lies now.
func (p *proc) path(fd int) (string, sys.Errno) {
	buf := make([]byte, 4096) // the kernel prints no more than a page
	n, e := sys.Readlinkat(p.fds, sys.Cname(strconv.Itoa(fd)), buf)
	if e != 0 {
		return "", e
	}
	return strings.TrimSuffix(string(buf[:n]), " (deleted)"), 0
}

// mount finds the line of mountinfo for a mount id.
func (p *proc) mount(id uint64) *mountEntry {
	for i := range p.mounts {
		if p.mounts[i].id == id {
			return &p.mounts[i]
		}
	}
	return nil
}

func pathError(op, path string, e sys.Errno) *fs.PathError {
	return &fs.PathError{Op: op, Path: path, Err: e}
}
