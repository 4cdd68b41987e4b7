// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"fmt"
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
// held, so whoever gets the lock looks whether the name still leads to it.

// locks is the directory of lock files, opened before the root is.
type locks struct {
	dir *os.File
	err error // why there is none; the run then goes on without, and says so
}

func openLocks() locks {
	base := "/run"
	if os.Geteuid() != 0 {
		base = os.Getenv("XDG_RUNTIME_DIR")
		if base == "" {
			return locks{err: fmt.Errorf("XDG_RUNTIME_DIR is not set")}
		}
	}
	path := filepath.Join(base, "fastlabel")
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(path), sys.OpenRead, 0)
	if e == syscall.ENOENT {
		if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
			return locks{err: err}
		}
		fd, e = sys.Openat(sys.AtFdcwd, sys.Cname(path), sys.OpenRead, 0)
	}
	if e != 0 {
		return locks{err: pathError("openat", path, e)}
	}
	return locks{dir: os.NewFile(uintptr(fd), path)}
}

func (l *locks) close() {
	if l.dir != nil {
		_ = l.dir.Close() // nothing was written through it
	}
}

// lock is one held lock. Its descriptor is a bare one, which nothing collects.
type lock struct {
	dir  int
	name string
	fd   int
}

// take waits for the lock of the volume id within ctx and tells wait once who
// holds it. It asks again and again because flock cannot be given up by a
// context: at first after 1 ms, then ever more rarely, up to 100 ms.
func (l *locks) take(ctx context.Context, id identity, root string, wait func(holder string)) (*lock, error) {
	name := fmt.Sprintf("%x-%x", id.dev, id.ino)
	fail := func(op string, e sys.Errno) error {
		return pathError(op, filepath.Join(l.dir.Name(), name), e)
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
				// Who holds it is only a courtesy to who waits.
				holder := fmt.Sprintf("process %d, relabelling %q\n", os.Getpid(), root)
				_ = syscall.Ftruncate(fd, 0)
				_, _ = syscall.Pwrite(fd, []byte(holder), 0)
				return &lock{dir: dir, name: name, fd: fd}, nil
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
		if e != errWouldBlock {
			return nil, fail("flock", e)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

func (l *lock) release() {
	if l == nil {
		return
	}
	sys.Unlinkat(l.dir, sys.Cname(l.name)) // if it stays, the next holder removes it
	sys.Close(l.fd)
}
