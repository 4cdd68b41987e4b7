// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"github.com/fastlabel/fastlabel/internal/sys"
)

// VolumeAt returns the volume whose root is at the path. Links are not followed.
func VolumeAt(root string) (Volume, error) {
	fd, e := openPath(root, sys.OpenPath)
	if e != 0 {
		return Volume{}, pathError("openat", root, e)
	}
	defer sys.Close(fd)
	v, e := VolumeOf(fd)
	if e != 0 {
		return Volume{}, pathError("statx", root, e)
	}
	return v, nil
}

// VolumeOf returns the volume whose root is open as fd. The mount alone does not do, for its
// id may be used again before Linux 6.8, nor does the filesystem's, which on XFS is
// the device's number: so the directory's birth is asked for too.
func VolumeOf(fd int) (Volume, sys.Errno) {
	at, born, e := sys.Place(fd)
	fsid, _ := sys.FSID(fd)
	return Volume{dev: at.Dev, ino: at.Ino, fsid: fsid, mount: at.Mount, born: born}, e
}

// Seen identifies the file at a path, for one thread.
type Seen struct {
	id    ID
	mount uint64
	errno sys.Errno
}

// SeenAt looks at path by the calling thread.
func SeenAt(path string) Seen {
	st, e := sys.Statx(sys.AtFdcwd, sys.Cname(path))
	return Seen{IDOf(st), st.Mount, e}
}

// Usual reports whether the last run saw the same at /, so that paths lead this thread to where
// they lead the others. It is false where the kernel does not report it (Linux 5.8).
func (s Seen) Usual() bool {
	if !sys.SharesAll() {
		return false
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	return process.now != nil && s.mount != 0 && s == process.now.root
}

// Apart reports whether a thread that sees root at / alone has another root directory or another
// mount namespace than the run. It is false where the kernel does not report it (Linux 5.8).
func (p *Proc) Apart(root Seen) bool { return apart(root, p.shared.root) }

func apart(a, b Seen) bool {
	return a.errno == 0 && b.errno == 0 && (a.id != b.id || a.mount != 0 && b.mount != 0 && a.mount != b.mount)
}

// ThreadIsApart is Apart for the calling thread where there is no run yet.
func ThreadIsApart() bool {
	there := make(chan Seen)
	go func() { there <- SeenAt("/") }()
	return apart(SeenAt("/"), <-there)
}
