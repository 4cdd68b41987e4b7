// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// Lock files lie in the runtime directory, which the owner of a volume cannot
// reach: a lock on the volume itself could be held by its owner for ever. They
// are named by device and inode, and it is flock that locks: the kernel lets go
// when the holder dies, however it dies.
//
// A file is removed by its holder alone, so it has a name as long as it is the lock. A
// run that gets the lock looks whether its file has one. The directory is named by its
// path each time: were it opened once a process, one that is made anew in its place would
// have locks of its own.

// Lock is one held lock. Its descriptor is a bare one, which nothing collects.
type Lock struct {
	// Unlocked is why there is no place for lock files. The lock then keeps out the runs
	// of this process only.
	Unlocked error

	id   volume
	path string // of the file
	fd   int    // -1: there is none
}

// TakeLock waits for the lock of the volume whose root is at path within ctx, and tells
// wait once, if it is not nil, who holds it.
func TakeLock(ctx context.Context, root sys.Stat, path string, wait func(holder string)) (*Lock, error) {
	tell := func(holder string) {
		if wait != nil {
			once := wait
			wait = nil
			once(holder)
		}
	}
	l := &Lock{id: volume{root.Dev, root.Ino}, fd: -1}
	if err := process.enter(ctx, l.id, tell); err != nil {
		return nil, err
	}
	taken := false
	defer func() {
		if !taken { // also if tell panics
			l.close()
			process.leave(l.id)
		}
	}()
	if err := l.take(ctx, path, tell); err != nil {
		return nil, err
	}
	taken = true
	return l, nil
}

// The wait for another process. flock that blocks would take a thread for each volume,
// and a signal to give it up.
const (
	eager   = time.Second            // so long
	often   = 5 * time.Millisecond   // it is asked for at least this often,
	rarely  = 100 * time.Millisecond // and then at least this often
	atFirst = time.Millisecond
)

// take locks the file.
func (l *Lock) take(ctx context.Context, path string, tell func(holder string)) error {
	me := fmt.Sprintf("process %d, relabelling %q", pid, path)
	begin, pause := time.Now(), time.Duration(0)
	for {
		if l.fd < 0 {
			if err := l.open(); err != nil {
				return err
			}
		}
		if l.Unlocked != nil {
			process.holds(l.id, me)
			return nil
		}
		switch e := sys.TryFlock(l.fd); e {
		case 0:
			st, e := sys.Fstatx(l.fd)
			if e != 0 { // the policy may refuse it, and would for ever
				return &fs.PathError{Op: "statx", Path: l.path, Err: e}
			}
			if st.Links > 0 {
				process.holds(l.id, me)
				l.sign(me, st.Size)
				return nil
			}
			l.close() // removed by its last holder: not the lock any more
			continue
		case syscall.EWOULDBLOCK:
		default:
			return &fs.PathError{Op: "flock", Path: l.path, Err: e}
		}
		if pause == atFirst { // once
			holder := l.signed()
			process.holds(l.id, holder)
			tell(holder)
		}
		most := often
		if time.Since(begin) >= eager {
			most = rarely
		}
		pause = max(atFirst, min(2*pause, most))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

var pid = os.Getpid()

// sign writes the holder into the file, as a courtesy to a run that waits.
func (l *Lock) sign(holder string, size int64) {
	if size > 0 { // a holder was killed; on ext4 a file that was cut is written to disk
		_ = syscall.Ftruncate(l.fd, 0)
	}
	_, _ = syscall.Pwrite(l.fd, []byte(holder+"\n"), 0)
}

func (l *Lock) signed() string {
	holder := make([]byte, 512)
	n, _ := syscall.Pread(l.fd, holder, 0) // -1 beside an error
	return strings.TrimSpace(string(holder[:max(n, 0)]))
}

// open opens the lock file, in the runtime directory of the system or, without the right
// to it, in that of the user.
func (l *Lock) open() (err error) {
	own := os.Getenv("XDG_RUNTIME_DIR")
	if os.Geteuid() == 0 {
		if l.Unlocked, err = l.openIn("/run"); l.Unlocked == nil || own == "" || !ours(own) {
			return err
		}
	}
	if own == "" {
		l.Unlocked = errors.New("XDG_RUNTIME_DIR is not set")
		return nil
	}
	l.Unlocked, err = l.openIn(own)
	return err
}

// ours says that no other user can write the directory. Root of a user namespace, to whom
// /run is not open, has one; that of the user who became root is not root's.
func ours(dir string) bool {
	var st syscall.Stat_t
	return syscall.Stat(dir, &st) == nil && int(st.Uid) == os.Geteuid() && st.Mode&0o022 == 0
}

// openIn opens the lock file in the directory for them beneath base. none is why there is
// no such directory.
func (l *Lock) openIn(base string) (none, err error) {
	dir := base + "/fastlabel"
	l.path = fmt.Sprintf("%s/%x-%x", dir, l.id.dev, l.id.ino)
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(l.path), sys.OpenLock, 0o600)
	if e == syscall.ENOENT {
		if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
			return err, nil
		}
		fd, e = sys.Openat(sys.AtFdcwd, sys.Cname(l.path), sys.OpenLock, 0o600)
	}
	if e == 0 {
		l.fd = fd
		return nil, nil
	}
	at, none1 := sys.Openat(sys.AtFdcwd, sys.Cname(dir), sys.OpenRead, 0)
	if none1 != 0 {
		return &fs.PathError{Op: "openat", Path: dir, Err: none1}, nil
	}
	sys.Close(at)
	return nil, &fs.PathError{Op: "openat", Path: l.path, Err: e}
}

func (l *Lock) close() {
	if l.fd >= 0 {
		sys.Close(l.fd)
		l.fd = -1
	}
}

// Release lets go of the lock; of none, it does nothing.
func (l *Lock) Release() {
	if l == nil {
		return
	}
	if l.fd >= 0 {
		sys.Unlinkat(sys.AtFdcwd, sys.Cname(l.path)) // if it stays, the next holder removes it
		l.close()
	}
	process.leave(l.id)
}
