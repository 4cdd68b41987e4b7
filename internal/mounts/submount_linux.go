// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/sys"
)

// Find opens the top of a mount that was in the table at the start, beneath the root m, as an
// O_PATH descriptor, and returns why it is skipped, or "". If a directory above it is renamed it is
// looked up by its id; it is an error if it has left the tree, or if it was unmounted or moved, and
// the directory beneath it, which was skipped, is there. The mount is nil if there is nothing to be
// done: it is gone, hidden under another, or beneath an exclusion, which is counted.
func (m *Mount) Find(listed mountinfo.Mount, b Bounds, a *run.Activity) (*Mount, string, *fs.PathError) {
	defer a.At("", "")
	p, real, info, path := m.proc, m.Real, listed, ""
	for range tries {
		rest := strings.TrimPrefix(info.Point[len(real):], "/")
		path = strings.TrimRight(m.Path, "/") + "/" + rest
		a.At("openat", path)
		fd, passed, e := reach(m.At, rest)
		switch e {
		case 0:
			a.At("statx", path)
			found, e := p.locate(fd, path)
			if e == 0 && found.Stat.Mount == info.ID {
				found.Real, found.Activity = info.Point, a
				why, counted := m.skips(&listed, b, passed)
				if counted {
					found.Close()
					return nil, "", nil
				}
				return found, why, nil
			}
			sys.Close(fd)
			if e != 0 {
				return nil, "", pathError("statx", path, e)
			}
		case syscall.ENOENT, syscall.ELOOP, syscall.ENOTDIR: // removed, or something else by now
		default:
			return nil, "", pathError("openat", path, e)
		}
		all, err := p.readTable()
		if err != nil {
			return nil, "", &fs.PathError{Op: "read", Path: path, Err: err}
		}
		now := mountinfo.ByID(all, info.ID)
		gone := now == nil || now.Device != info.Device
		uncovered := e == 0 && (gone || m.covered(passed)) || !gone && filepath.Base(now.Point) != filepath.Base(info.Point)
		beneath, _ := m.skips(p.ByID(info.Parent), b, passed)
		switch {
		case mountinfo.Hidden(p.Mounts, p.ByID(info.ID)):
			return nil, "", nil
		case uncovered && beneath == "":
			return nil, "", &fs.PathError{Op: "openat", Path: path, Err: errUnmounted}
		case gone:
			return nil, "", nil
		case mountinfo.Hidden(all, now):
			return &Mount{Path: path, At: -1, Top: -1}, "something was mounted over it during the run", nil
		}
		at, e := p.path(m.At)
		if e != 0 {
			return nil, "", pathError("readlinkat", m.Path, e)
		}
		if len(mountinfo.Beneath([]mountinfo.Mount{*now}, at)) == 0 {
			return nil, "", &fs.PathError{Op: "openat", Path: path, Err: fmt.Errorf("what is mounted here was moved out of the tree, to %s", now.Point)}
		}
		real, info = at, *now
	}
	return nil, "", &fs.PathError{Op: "openat", Path: path, Err: errors.New("the mount point keeps moving: run it again when it is at rest")}
}

// covered reports whether passed leads to a directory of m that was skipped as what lies under
// a mount. Only a clone shows it.
func (m *Mount) covered(passed []ID) bool {
	why, is := m.Skip[passed[len(passed)-1]]
	return is && why == ""
}

var errUnmounted = errors.New("what was mounted here was unmounted or moved during the run, and what lay beneath it was skipped")

// skips returns why what is in the mount listed, nil if it is not known, is skipped, or "", and
// whether it is counted as part of what holds it. To it passed leads from the root m.
func (m *Mount) skips(listed *mountinfo.Mount, b Bounds, passed []ID) (why string, counted bool) {
	last := len(passed) - 1
	for i, id := range passed {
		if excluded := b.Excluded[id]; excluded != "" {
			return excluded, i < last
		}
		if place, is := b.Refused[id]; is && why == "" {
			why = place.String()
			if i < last {
				why = "it lies in " + place.Path + ", which is never relabelled"
			}
		}
	}
	if why != "" || listed == nil {
		return why, false
	}
	for at := listed; at != nil && at.ID != m.Stat.Mount; at = mountinfo.Above(m.proc.Mounts, at) {
		atHome := strings.HasPrefix(at.Point+"/", "/dev/") || strings.HasPrefix(at.Point+"/", "/sys/")
		switch {
		case !at.Kernels() || at != listed && at.FSType == "autofs": // what an automount has mounted on itself is another's
			continue
		case !b.Kernels || !m.proc.SELinux || !atHome:
			return "it lies in the kernel's own filesystem (" + at.FSType + ")", false
		}
		break
	}
	if why = listed.Unlabelable(m.proc.SELinux); why == "" && listed.ReadOnly {
		why = "mounted read-only"
	}
	return why, false
}

// Upper opens the upper layer of the overlayfs m, and says of which kind its filesystem is.
// The path is the one by which overlayfs was mounted, maybe in another mount namespace: if
// what is there has another size than overlayfs reports, it is an error.
func (m *Mount) Upper(info *mountinfo.Mount) (fd int, kind int64, e sys.Errno) {
	path := ""
	for option := range strings.SplitSeq(info.Super, ",") {
		if text, is := strings.CutPrefix(option, "upperdir="); is {
			path = mountinfo.Unescape(text)
		}
	}
	if !strings.HasPrefix(path, "/") {
		return -1, 0, syscall.ENOENT
	}
	if fd, e = sys.Openat(sys.AtFdcwd, sys.Cname(path), sys.OpenDir, 0); e != 0 {
		return -1, 0, e
	}
	kind, e = sys.FSType(fd)
	if e == 0 && !sys.SameSize(fd, m.At) {
		e = syscall.ESTALE
	}
	if e != 0 {
		sys.Close(fd)
		return -1, 0, e
	}
	return fd, kind, 0
}
