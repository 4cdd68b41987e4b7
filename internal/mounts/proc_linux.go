// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/sys"
)

// Proc holds what one run takes from /proc.
type Proc struct {
	NoSELinux bool // the kernel has none
	// After Learn: the table of mounts, if it is needed, and whether SELinux is on.
	Mounts  []mountinfo.Mount
	SELinux bool

	shared   *opened
	event    uint64 // the last change of the mounts when the run began
	once     sync.Once
	cwd      int // see OpenOutside
	cwdErrno sys.Errno
}

// OpenProc readies /proc for a run. root is what the calling thread has just seen at /, or zero.
func OpenProc(root Seen) (*Proc, error) {
	shared, event, err := process.enter(root)
	if err != nil {
		return nil, err
	}
	return &Proc{shared: shared, event: event, cwd: -1}, nil
}

// openProc opens /proc in the root directory root.
func openProc(root Seen) (*opened, error) {
	o := &opened{root: root, at: SeenAt("/proc/self/fd"), self: -1, fds: -1, changes: -1}
	dir, proc := sys.ProcDir()
	for _, open := range [...]struct {
		fd   *int
		path string
	}{
		{&o.self, "self/"},  // a link
		{&o.fds, "self/fd"}, // through which is labelled what is labelled by its descriptor
		{&o.changes, "self/mountinfo"},
	} {
		var err error
		if *open.fd, err = openGenuine(dir, proc+open.path); err != nil {
			o.close()
			return nil, err
		}
	}
	return o, nil
}

// openGenuine opens a file of /proc, and nothing that is mounted in its place. That there is none
// must not be taken for a root that is gone.
func openGenuine(dir int, path string) (int, error) {
	fd, e := sys.Openat(dir, sys.Cname(path), sys.OpenRead, 0)
	if e == syscall.ENOENT {
		return -1, &fs.PathError{Op: "openat", Path: path, Err: ErrNoProc}
	}
	if e != 0 {
		return -1, pathError("openat", path, e)
	}
	if kind, _ := sys.FSType(fd); kind != sys.Proc { // 0 where it is not known
		sys.Close(fd)
		return -1, &fs.PathError{Op: "fstatfs", Path: path, Err: errors.New("not a proc filesystem")}
	}
	return fd, nil
}

// ErrNoProc is of a root directory in which there is no /proc.
var ErrNoProc = errors.New("no proc filesystem is mounted on /proc")

// Quiet reports whether nothing was mounted, unmounted or moved since the run began.
func (p *Proc) Quiet() bool {
	event, _ := process.look(p.shared)
	return event == p.event
}

// Refusals are the refused places as they are now; one that was renamed is noticed within a second.
// a has the call under way.
func (p *Proc) Refusals(a *run.Activity) map[ID]Refused { return process.places.now(p.event, a) }

// Close is the end of the run.
func (p *Proc) Close() {
	process.leave(p.shared)
	if p.cwd >= 0 {
		sys.Close(p.cwd)
	}
}

// Plain reports whether entries of root's mount have labels of their own, as far as that is
// known without the table of mounts (Linux 6.11 where SELinux is on).
func (p *Proc) Plain(root *Mount) bool {
	if p.NoSELinux {
		return true
	}
	_, plain := p.ask(root)
	return plain
}

// ask is Plain, with what the kernel reports of the mount.
func (p *Proc) ask(root *Mount) (m sys.MountStat, plain bool) {
	m, e := sys.Statmount(root.At)
	p.SELinux = mountinfo.HasOption(m.Options, "seclabel")
	return m, e == 0 && (p.SELinux || p.NoSELinux) && !mountinfo.HasOption(m.Options, "context")
}

// Learn reads the table of mounts, if it is needed, and where among them the root lies. It refuses
// a root that cannot have a label of its own, and by ENAMETOOLONG one of which the kernel reports no
// path: what is mounted beneath it is not known.
func (p *Proc) Learn(root *Mount, b Bounds) error {
	path, e := p.path(root.At)
	if root.Real = path; p.needsNoTable(root, b) {
		return nil
	}
	for try := 0; e == 0; try++ {
		var err error
		if p.Mounts, err = p.readTable(); err != nil {
			return err
		}
		root.Real = path
		if path, e = p.path(root.At); path == root.Real {
			break
		}
		if try == tries { // renamed: the table may name what is beneath it by either path
			e = syscall.EAGAIN
		}
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

// needsNoTable reports that nothing is mounted in root's mount, its entries have labels of their
// own, and no refused place may lie in it. To read the table for a thousand volumes on a node with
// two thousand mounts took 5 s, and this 0.1 s. Before Linux 6.8 the last table serves if nothing
// was mounted since; a directory above a mount may have been renamed, so no path of it is used.
func (p *Proc) needsNoTable(root *Mount, b Bounds) bool {
	root.know()
	for id, place := range b.Refused {
		if root.mayHold(id, place) {
			return false
		}
	}
	if root.Kind == sys.Overlay { // its layers are in the table
		return false
	}
	m, plain := p.ask(root)
	if has, e := sys.HasMounts(m.ID); plain && e == 0 {
		return !has
	}
	_, kept := process.look(p.shared)
	mine := mountinfo.ByID(kept, root.Stat.Mount)
	p.SELinux = mountinfo.SELinux(kept)
	return mine != nil && mine.Unlabelable(p.SELinux) == "" &&
		!slices.ContainsFunc(kept, func(m mountinfo.Mount) bool { return m.Parent == mine.ID })
}

func (p *Proc) readTable() ([]mountinfo.Mount, error) {
	event, _ := process.look(p.shared) // before the reading
	fd, e := sys.Openat(p.shared.self, sys.Cname("mountinfo"), sys.OpenRead, 0)
	if e != 0 {
		return nil, pathError("openat", "/proc/self/mountinfo", e)
	}
	all, err := mountinfo.ReadFrom(os.NewFile(uintptr(fd), "/proc/self/mountinfo"))
	if err == nil {
		process.store(all, event)
	}
	return all, err
}

// MountID returns the id of the mount that fd stands in: by a call, or from the text in fdinfo
// where the kernel has none (before Linux 5.8), a seccomp profile refuses them or the
// filesystem has no handles.
func (p *Proc) MountID(fd int) (uint64, sys.Errno) {
	for _, ask := range [...]func(int) (uint64, sys.Errno){sys.MountID, sys.MountIDByHandle} {
		if id, e := ask(fd); e == 0 {
			return id, 0
		}
	}
	info, e := sys.Openat(p.shared.self, sys.Cname("fdinfo/"+strconv.Itoa(fd)), sys.OpenRead, 0)
	if e != 0 {
		return 0, e
	}
	f := os.NewFile(uintptr(info), "fdinfo")
	defer f.Close()          // only read
	text, _ := io.ReadAll(f) // what is missing is missed below
	_, value, _ := strings.Cut(string(text), "\nmnt_id:")
	var id uint64
	if _, err := fmt.Sscan(value, &id); err != nil {
		return 0, syscall.ENOTSUP
	}
	return id, 0
}

// path returns where fd lies now. The kernel reports no path of PATH_MAX bytes or more.
func (p *Proc) path(fd int) (string, sys.Errno) {
	buf := make([]byte, syscall.PathMax)
	n, e := sys.Readlinkat(p.shared.fds, strconv.Itoa(fd), buf)
	switch {
	case e != 0:
		return "", e
	case n == len(buf): // cut off: a page may be larger
		return "", syscall.ENAMETOOLONG
	}
	return string(buf[:n]), 0
}

// ByID finds the line of mountinfo for a mount id.
func (p *Proc) ByID(id uint64) *mountinfo.Mount { return mountinfo.ByID(p.Mounts, id) }

func pathError(op, path string, e sys.Errno) *fs.PathError {
	return &fs.PathError{Op: op, Path: path, Err: e}
}

// tries bounds how often a mount that moves is looked up. Each reads the table: 20 µs a
// mount, as measured on a busy machine.
const tries = 32
