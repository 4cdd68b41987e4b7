// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// Lock files lie in the runtime directory, which the owner of a volume cannot
// reach: a lock on the volume itself could be held by its owner for ever. They
// are named by device and inode, and it is flock that locks: the kernel lets go
// when the holder dies, however it dies. A file is removed while its lock is
// held, so a run that gets the lock looks whether the name still leads to it.

// Locks is the directory of lock files.
type Locks struct {
	dir *os.File
	Err error // why there is none
}

// OpenLocks opens the directory of lock files, before a root is opened: that of
// the system or, without the right to it, that of the user.
func OpenLocks() Locks {
	if os.Geteuid() == 0 {
		l := openLocks("/run")
		if own := os.Getenv("XDG_RUNTIME_DIR"); l.Err == nil || own == "" || !ours(own) {
			return l
		}
	}
	base := os.Getenv("XDG_RUNTIME_DIR")
	if base == "" {
		return Locks{Err: errors.New("XDG_RUNTIME_DIR is not set")}
	}
	return openLocks(base)
}

// ours says that no other user can write the directory. Root of a user namespace, to whom
// /run is not open, has one; that of the user who became root is not root's.
func ours(dir string) bool {
	var st syscall.Stat_t
	return syscall.Stat(dir, &st) == nil && int(st.Uid) == os.Geteuid() && st.Mode&0o022 == 0
}

func openLocks(base string) Locks {
	path := filepath.Join(base, "fastlabel")
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(path), sys.OpenRead, 0)
	if e == syscall.ENOENT {
		if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
			return Locks{Err: err}
		}
		fd, e = sys.Openat(sys.AtFdcwd, sys.Cname(path), sys.OpenRead, 0)
	}
	if e != 0 {
		return Locks{Err: &fs.PathError{Op: "openat", Path: path, Err: e}}
	}
	return Locks{dir: os.NewFile(uintptr(fd), path)}
}

// Close closes the directory, when no lock in it is held any more.
func (l *Locks) Close() {
	if l.dir != nil {
		_ = l.dir.Close() // nothing was written through it
	}
}

// Lock is one held lock. Its descriptor is a bare one, which nothing collects.
type Lock struct {
	dir  int
	name string
	fd   int
}

// Take waits for the lock of the volume whose root is at path within ctx, and tells
// wait once who holds it. It asks again and again because flock cannot be given up by
// a context: at first after 1 ms, then ever more rarely, up to 100 ms.
func (l *Locks) Take(ctx context.Context, root sys.Stat, path string, wait func(holder string)) (*Lock, error) {
	name := fmt.Sprintf("%x-%x", root.Dev, root.Ino)
	fail := func(op string, e sys.Errno) error {
		return &fs.PathError{Op: op, Path: filepath.Join(l.dir.Name(), name), Err: e}
	}
	dir := int(l.dir.Fd())
	for pause := time.Millisecond; ; pause = min(pause*2, 100*time.Millisecond) {
		fd, e := sys.Openat(dir, sys.Cname(name), sys.OpenLock, 0o600)
		if e != 0 {
			return nil, fail("openat", e)
		}
		e = sys.TryFlock(fd)
		if e == 0 {
			mine, e1 := sys.Fstatx(fd)
			named, e2 := sys.Statx(dir, sys.Cname(name))
			switch {
			case e1 != 0: // the policy may refuse it, and would for ever
				sys.Close(fd)
				return nil, fail("statx", e1)
			case e2 != 0 && e2 != syscall.ENOENT:
				sys.Close(fd)
				return nil, fail("statx", e2)
			case e2 == 0 && mine.Ino == named.Ino:
				// The holder is told as a courtesy to the run that waits.
				holder := fmt.Sprintf("process %d, relabelling %q\n", os.Getpid(), path)
				if mine.Size > 0 { // a holder was killed; on ext4 a file that was cut is written to disk
					_ = syscall.Ftruncate(fd, 0)
				}
				_, _ = syscall.Pwrite(fd, []byte(holder), 0)
				return &Lock{dir: dir, name: name, fd: fd}, nil
			}
			sys.Close(fd) // removed by its last holder: not the lock any more
			continue
		}
		if wait != nil && pause > time.Millisecond {
			holder := make([]byte, 512)
			n, _ := syscall.Pread(fd, holder, 0) // -1 beside an error
			wait(strings.TrimSpace(string(holder[:max(n, 0)])))
			wait = nil
		}
		sys.Close(fd)
		if e != syscall.EWOULDBLOCK {
			return nil, fail("flock", e)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// Release lets go of the lock; of none, it does nothing.
func (l *Lock) Release() {
	if l == nil {
		return
	}
	sys.Unlinkat(l.dir, sys.Cname(l.name)) // if it stays, the next holder removes it
	sys.Close(l.fd)
}
