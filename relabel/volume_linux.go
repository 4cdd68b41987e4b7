// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// foreign is an error where path may lead the calling thread elsewhere than the threads
// that do the work: where it alone has another root directory or another mount namespace,
// in which mounts have other ids. It is none where the kernel does not tell (Linux 5.8).
func foreign(path string) error {
	there := make(chan sys.Stat)
	go func() { there <- slash() }()
	a, b := slash(), <-there
	elsewhere := a.Ino != 0 && b.Ino != 0 && mounts.IDOf(a) != mounts.IDOf(b)
	if elsewhere || a.Mount != 0 && b.Mount != 0 && a.Mount != b.Mount {
		return &fs.PathError{Op: "relabel", Path: path, Err: fmt.Errorf("%w: the calling thread has a root directory or a mount namespace of its own", ErrRefused)}
	}
	return nil
}

func slash() sys.Stat {
	st, _ := sys.Statx(sys.AtFdcwd, sys.Cname("/")) // zero beside an errno
	return st
}

// volumeAt says which volume root is. Links are not followed, as by Tree.
func volumeAt(call *watch.Activity, root string) (volumeID, error) {
	call.At("openat", root)
	if strings.Contains(root, "\x00") {
		return volumeID{}, pathError("openat", root, syscall.EINVAL)
	}
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(root), sys.OpenPath, 0)
	if e != 0 {
		return volumeID{}, pathError("openat", root, e)
	}
	defer sys.Close(fd)
	id := volumeOf(fd)
	if id == (volumeID{}) {
		_, e := sys.Fstatx(fd)
		return id, pathError("statx", root, e)
	}
	return id, nil
}

// volumeOf is zero if the kernel does not tell. The mount alone does not do, for its
// id may be used again before Linux 6.8, nor does the filesystem's, which on XFS is
// the device's number: so the directory's birth is asked for too.
func volumeOf(fd int) volumeID {
	at, e := sys.Place(fd)
	if e != 0 {
		return volumeID{}
	}
	id := volumeID{dev: at.Dev, ino: at.Ino, mount: at.Mount, born: at.Born}
	if fsid, e := sys.FSID(fd); e == 0 {
		id.fsid = fsid
	}
	return id
}
