// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// OpenRoot names the root by an O_PATH descriptor, whatever its kind. An automount is
// triggered.
func (p *Proc) OpenRoot(path string, a *watch.Activity) (*Mount, error) {
	if strings.Contains(path, "\x00") { // no file has such a name, but none is gone either
		return nil, pathError("openat", path, syscall.EINVAL)
	}
	a.At("openat", path)
	defer a.At("", "")
	// An automount is triggered only by who wants a directory.
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(path), sys.OpenPathDir, 0)
	if e == syscall.ENOTDIR {
		fd, e = sys.Openat(sys.AtFdcwd, sys.Cname(path), sys.OpenPath, 0)
	}
	if e != 0 {
		return nil, pathError("openat", path, e)
	}
	a.At("statx", path)
	root, op, e := p.Locate(fd, path)
	if e != 0 {
		sys.Close(fd)
		return nil, pathError(op, path, e)
	}
	return root, nil
}

// ErrExcluded is of a root that an exclusion is, or holds.
var ErrExcluded = errors.New("it is excluded, or lies in what is")

// Admit is ErrExcluded for such a root: to do nothing would look done, and to label it
// is not what was asked for.
func (b Bounds) Admit(root *Mount) error {
	if len(b.Excluded) == 0 {
		return nil
	}
	from, up := root.At, ".."
	if root.Stat.Kind != sys.KindDir {
		fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(root.Path[:strings.LastIndexByte(root.Path, '/')+1]+"."), sys.OpenPath, 0)
		if e != 0 {
			return pathError("openat", root.Path, e)
		}
		defer sys.Close(fd)
		from, up = fd, "."
	}
	for at := IDOf(root.Stat); ; up += "/.." {
		if b.Excluded[at] != "" {
			return &fs.PathError{Op: "relabel", Path: root.Path, Err: ErrExcluded}
		}
		st, e := sys.Statx(from, sys.Cname(up))
		if e != 0 {
			return pathError("statx", root.Path, e)
		}
		if IDOf(st) == at { // the root directory
			return nil
		}
		at = IDOf(st)
	}
}
