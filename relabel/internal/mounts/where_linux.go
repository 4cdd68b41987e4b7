// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// The kernel tells a path of less than pathMax bytes. A root can lie deeper, and so
// can what is mounted beneath it: /proc/self/mountinfo has paths of any length. The
// root's path then follows from these. Where none of them leads through the root,
// nothing is mounted beneath it, and no path is needed.
const (
	pathMax = 4096 // PATH_MAX of linux/limits.h
	// untold is the path of such a root. No other path begins with it.
	untold = "(untold)"
)

// Told says whether Real is a path that the kernel takes.
func (m *Mount) Told() bool { return m.Real != untold && len(m.Real) < pathMax }

// path is where the kernel says that fd lies now.
func (p *Proc) path(fd int) (string, sys.Errno) {
	buf := make([]byte, pathMax)
	n, e := sys.Readlinkat(p.shared.fds, strconv.Itoa(fd), buf)
	if e == 0 && n == len(buf) { // cut off: a page may be larger
		e = syscall.ENAMETOOLONG
	}
	if e != 0 {
		return "", e
	}
	return string(buf[:n]), 0
}

// where is the path of the root among those of the mounts in all, or untold. It is
// EAGAIN if a mount that may be beneath the root is not where it was listed.
func (p *Proc) where(root *Mount, all []mountinfo.Mount) (string, sys.Errno) {
	real, e := p.path(root.At)
	if e != syscall.ENAMETOOLONG {
		return real, e
	}
	slash, e := sys.Openat(sys.AtFdcwd, sys.Cname("/"), sys.OpenPath, 0)
	if e != 0 {
		return "", e
	}
	defer sys.Close(slash)
	real, e = untold, 0
	for i := range all {
		m := &all[i]
		if len(m.Point) <= pathMax {
			continue
		}
		names := strings.Split(m.Point, "/")[1:]
		passed, there := p.leads(slash, m, names)
		at := slices.Index(passed, IDOf(root.Stat)) + 1
		if at > 0 {
			_, there = p.leads(root.At, m, names[at:])
		}
		switch {
		case !there:
			e = syscall.EAGAIN
		case at > 0:
			return "/" + strings.Join(names[:at], "/"), 0
		}
	}
	return real, e
}

// leads reports whether the names lead from dir to the top of m, and what they pass.
func (p *Proc) leads(dir int, m *mountinfo.Mount, names []string) ([]ID, bool) {
	fd, passed, e := reach(dir, strings.Join(names, "/"))
	if e != 0 {
		return nil, false
	}
	defer sys.Close(fd)
	id, e := p.MountOf(fd)
	return passed, e == 0 && id == m.ID
}
