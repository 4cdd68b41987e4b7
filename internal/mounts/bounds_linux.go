// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/sys"
)

// Bounds are what a run skips.
type Bounds struct {
	Refused       map[ID]Refused
	Excluded      map[ID]string // see Exclusions
	OneFilesystem bool          // what is mounted beneath the root is skipped
	// Kernels: the kernel's own filesystems are labelled where SELinux is on, at the
	// places for which a policy has rules. Elsewhere, as in a chroot, they may be the
	// same ones, and a label by that path would be wrong here.
	Kernels bool
}

// OtherFilesystem is the reason for a mount or a subvolume that is skipped by OneFilesystem.
const OtherFilesystem = "another filesystem"

// Exclusions looks up the paths. One that is missing must not be taken for a root that is gone,
// so no errno is in the error. a has the call under way.
func Exclusions(paths []string, a *run.Activity) (map[ID]string, error) {
	defer a.At("", "")
	out := make(map[ID]string, len(paths))
	for _, p := range paths {
		a.At("statx", p)
		st, e := sys.Statx(sys.AtFdcwd, sys.Cname(p))
		if e != 0 {
			return nil, &fs.PathError{Op: "exclude", Path: p, Err: errors.New(e.Error())}
		}
		out[IDOf(st)] = "excluded"
	}
	return out, nil
}

// ErrExcluded is for a root that is excluded, or lies beneath an exclusion.
var ErrExcluded = errors.New("it is excluded, or lies in what is")

// Admit returns ErrExcluded for such a root: to do nothing would look done, and to label it
// was not asked for.
func (b Bounds) Admit(root *Mount) error {
	if len(b.Excluded) == 0 {
		return nil
	}
	path, e := root.proc.path(root.At)
	if e != 0 {
		return pathError("readlinkat", root.Path, e)
	}
	defer root.Now("")
	for at := IDOf(root.Stat); ; {
		if b.Excluded[at] != "" {
			return &fs.PathError{Op: "relabel", Path: root.Path, Err: ErrExcluded}
		}
		if path == "/" {
			return nil
		}
		path = filepath.Dir(path)
		root.Activity.At("statx", path)
		st, e := sys.Statx(sys.AtFdcwd, sys.Cname(path))
		if e != 0 {
			return pathError("statx", root.Path, e)
		}
		at = IDOf(st)
	}
}

// Frozen reports whether fd lies in a read-only subvolume of btrfs, other than that of m's
// top.
func (m *Mount) Frozen(fd int) bool {
	id, readOnly, e := sys.Subvolume(fd)
	if e != 0 || !readOnly {
		return false
	}
	top, _, e := sys.Subvolume(m.Top)
	return e == 0 && id != top
}

// skipAll sets what the walk of m skips.
func (m *Mount) skipAll(b Bounds) {
	m.Skip, m.SkipInodes = nil, nil
	for id, why := range b.Excluded {
		m.skip(id, why)
	}
	for id, place := range b.Refused {
		if m.mayHold(id, place) {
			m.skip(id, place.String())
		}
	}
	if m.Confined == Clone { // else the walk meets the mounts themselves
		m.skipBeneath()
	}
	m.Asks = len(m.Skip) > 0 && !sys.TrueInodes(m.Kind)
	m.ByDevice = m.oneFilesystem && !sys.TrueInodes(m.Kind)
}

func (m *Mount) skip(id ID, why string) {
	if m.Skip == nil {
		m.Skip, m.SkipInodes = make(map[ID]string), make(map[uint64]bool)
	}
	m.Skip[id], m.SkipInodes[id.Ino] = why, true
}

// skipBeneath has the walk skip what lies under other mounts in m.
func (m *Mount) skipBeneath() {
	why := ""
	if m.oneFilesystem {
		why = OtherFilesystem
	}
	for _, on := range mountinfo.Beneath(m.proc.Mounts, m.Real) {
		if on.Parent != m.Stat.Mount {
			continue
		}
		fd, _, e := reach(m.Top, strings.TrimPrefix(on.Point[len(m.Real):], "/"))
		if e != 0 {
			continue // renamed since: nothing of that name is hidden now
		}
		if st, e := sys.Fstatx(fd); e == 0 {
			m.skip(IDOf(st), why)
		}
		sys.Close(fd)
	}
}

// mayHold reports whether the place may lie in m as a plain directory, by another mount of its
// filesystem. The table of mounts shows it, if it was read and has both: not in a chroot, nor
// before Linux 5.8. Subvolumes of btrfs have device numbers of their own, which are none of a disk's.
func (m *Mount) mayHold(id ID, place Refused) bool {
	mine, theirs := m.proc.ByID(m.Stat.Mount), m.proc.ByID(place.mount)
	switch {
	case place.mount != 0 && place.mount == m.Stat.Mount:
		return false
	case mine != nil && theirs != nil:
		return mine.Device == theirs.Device && strings.HasPrefix(theirs.Inside(place.Path), strings.TrimSuffix(mine.Inside(m.Real), "/")+"/")
	case id.Dev == m.Stat.Dev || m.Kind != sys.Btrfs || id.Dev>>32 != 0:
		return id.Dev == m.Stat.Dev
	}
	kind, e := sys.FSTypeAt(place.Path)
	return e != 0 || kind == sys.Btrfs
}
