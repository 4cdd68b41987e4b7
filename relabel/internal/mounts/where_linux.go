// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"slices"
	"strconv"
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
// EAGAIN if a mount may have been beneath the root and has moved since it was listed.
func (p *Proc) where(root *Mount, all []mountinfo.Mount) (string, sys.Errno) {
	real, e := p.path(root.At)
	if e != syscall.ENAMETOOLONG {
		return real, e
	}
	e = 0
	for i := range all {
		m := &all[i]
		if len(m.Point) <= pathMax || !mountinfo.Descends(all, m, root.Stat.Mount) {
			continue
		}
		for end := pathMax; end < len(m.Point); end++ {
			if m.Point[end] == '/' && p.leads(root.At, m.Point[end+1:], m) {
				return m.Point[:end], 0
			}
		}
		if !mountinfo.Hidden(all, m) && !p.apart(root, m) {
			e = syscall.EAGAIN
		}
	}
	return untold, e
}

// leads reports whether path leads from dir to the top of m, and not through but.
func (p *Proc) leads(dir int, path string, m *mountinfo.Mount, but ...ID) bool {
	fd, passed, e := reach(dir, path)
	if e != 0 {
		return false
	}
	defer sys.Close(fd)
	at, _, e := p.Locate(fd, path)
	return e == 0 && at.Stat.Mount == m.ID && !slices.ContainsFunc(passed, func(id ID) bool { return slices.Contains(but, id) })
}

// apart reports whether m is where it was listed, and the root not above it.
func (p *Proc) apart(root *Mount, m *mountinfo.Mount) bool {
	top, e := sys.Openat(sys.AtFdcwd, sys.Cname("/"), sys.OpenPath, 0)
	if e != 0 {
		return false
	}
	defer sys.Close(top)
	return p.leads(top, m.Point[1:], m, IDOf(root.Stat))
}
