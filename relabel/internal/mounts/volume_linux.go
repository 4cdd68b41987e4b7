// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// VolumeAt says which volume root is. Links are not followed.
func VolumeAt(root string) (Volume, error) {
	if strings.Contains(root, "\x00") {
		return Volume{}, pathError("openat", root, syscall.EINVAL)
	}
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(root), sys.OpenPath, 0)
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

// VolumeOf says which volume fd is. The mount alone does not do, for its
// id may be used again before Linux 6.8, nor does the filesystem's, which on XFS is
// the device's number: so the directory's birth is asked for too.
func VolumeOf(fd int) (Volume, sys.Errno) {
	at, e := sys.Place(fd)
	fsid, _ := sys.FSID(fd)
	return Volume{dev: at.Dev, ino: at.Ino, fsid: fsid, mount: at.Mount, born: at.Born}, e
}

// seen is what was at a path.
type seen struct {
	id    ID
	mount uint64
	errno sys.Errno
}

func seenAt(path string) seen {
	st, e := sys.Statx(sys.AtFdcwd, sys.Cname(path))
	return seen{IDOf(st), st.Mount, e}
}

// Slash is the root directory of a thread.
type Slash struct{ seen }

// SlashHere returns that of the calling thread.
func SlashHere() Slash { return Slash{seenAt("/")} }

// Usual reports whether the last run saw the same, so that paths lead this thread to where they
// lead the others. It is false where the kernel does not tell (Linux 5.8).
func (s Slash) Usual() bool {
	process.mu.Lock()
	defer process.mu.Unlock()
	return process.now != nil && s.mount != 0 && s.seen == process.now.root
}

// Apart reports whether paths may lead a thread with that root directory elsewhere than the
// threads of the run: it alone has another root directory or another mount namespace, in
// which mounts have other ids. It is false where the kernel does not tell (Linux 5.8).
func (p *Proc) Apart(s Slash) bool { return apart(s.seen, p.shared.root) }

func apart(a, b seen) bool {
	return a.errno == 0 && b.errno == 0 && (a.id != b.id || a.mount != 0 && b.mount != 0 && a.mount != b.mount)
}

// ThreadIsApart is Apart for the calling thread where there is no run yet.
func ThreadIsApart() bool {
	there := make(chan seen)
	go func() { there <- seenAt("/") }()
	return apart(seenAt("/"), <-there)
}
