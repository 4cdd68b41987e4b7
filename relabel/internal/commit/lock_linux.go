// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// The lock file lies in the runtime directory, which the owner of a volume cannot
// reach: a lock on the volume itself could be held by its owner for ever. Each volume has
// a byte of it, and the open file holds the lock (fcntl(2), "Open file description
// locks"): the kernel lets go when the holder dies, however it dies.
//
// The file is opened once in a process and nobody removes it. If somebody does, one that is
// made anew in its place has locks of its own: so a run that has its byte looks whether the
// path still leads to the file.

// Lock is one held lock.
type Lock struct {
	// Unlocked is why there is no place for a lock file. The lock then keeps out the runs
	// of this process only.
	Unlocked error
	// After is what the run of this process did for which this one waited.
	After string

	id   volume
	file *lockFile // nil: there is none
}

// lockFile is an open lock file. Its descriptor is a bare one, which nothing collects.
type lockFile struct {
	path  string
	fd    int
	id    volume // of the file itself
	users int    // guarded by kept.mu
}

// kept is the lock file that new runs use.
var kept struct {
	mu   sync.Mutex
	file *lockFile
}

// TakeLock waits for the lock of the volume whose root is at path within ctx, and tells
// wait once, if it is not nil, who holds it. What the caller does is for the After of others.
func TakeLock(ctx context.Context, root sys.Stat, path, does string, wait func(holder string)) (*Lock, error) {
	tell := func(holder string) {
		if wait != nil {
			once := wait
			wait = nil
			once(holder)
		}
	}
	l := &Lock{id: volume{root.Dev, root.Ino}}
	var err error
	if l.After, err = process.enter(ctx, l.id, does, tell); err != nil {
		return nil, err
	}
	taken := false
	defer func() {
		if !taken { // also if tell panics
			l.leaveFile()
			process.leave(l.id)
		}
	}()
	if err := l.take(ctx, path, tell); err != nil {
		return nil, err
	}
	taken = true
	return l, nil
}

// The wait for another process. A call that blocks would take a thread for each volume,
// and a signal to give it up.
const (
	eager   = time.Second            // so long
	often   = 5 * time.Millisecond   // it is asked for at least this often,
	rarely  = 100 * time.Millisecond // and then at least this often
	atFirst = time.Millisecond
)

// take locks the volume's byte.
func (l *Lock) take(ctx context.Context, path string, tell func(holder string)) error {
	me := fmt.Sprintf("process %d, relabelling %q", pid, path)
	begin, pause := time.Now(), time.Duration(0)
	for {
		if l.file == nil {
			if err := l.open(); err != nil {
				return err
			}
		}
		if l.Unlocked != nil {
			process.holds(l.id, me)
			return nil
		}
		switch e := sys.TryLock(l.file.fd, l.id.byte()); e {
		case 0:
			is, err := l.file.is()
			if err != nil { // the policy may refuse it, and would for ever
				return err
			}
			if is {
				process.holds(l.id, me)
				l.file.sign(l.id, me)
				return nil
			}
			l.replaceFile()
			continue
		case syscall.EAGAIN:
		default:
			return &fs.PathError{Op: "fcntl", Path: l.file.path, Err: e}
		}
		if pause == atFirst { // once
			holder := l.file.signed(l.id)
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

// byte is where the volume is locked. That two have the same is as good as excluded, and
// would have one wait for the other.
func (v volume) byte() int64 {
	h, l := bits.Mul64(v.ino^0x9e3779b97f4a7c15, v.dev^0xd1b54a32d192ed03)
	return int64((h ^ l) >> 2) // with room behind it
}

// The holder writes its name into the file as a courtesy to a run that waits: one of slots
// lines, each behind the byte's number, for another volume's holder may write over it.
const (
	slots    = 64
	slotSize = 512
)

func (v volume) slot() int64 { return v.byte() % slots * slotSize }

func (f *lockFile) sign(v volume, holder string) {
	line := make([]byte, slotSize)
	copy(line, fmt.Sprintf("%x %s", v.byte(), holder))
	_, _ = syscall.Pwrite(f.fd, line, v.slot())
}

// signed is who signed last for the volume; "" where that is not known.
func (f *lockFile) signed(v volume) string {
	line := make([]byte, slotSize)
	n, _ := syscall.Pread(f.fd, line, v.slot()) // -1 beside an error
	whose, holder, _ := strings.Cut(strings.TrimRight(string(line[:max(n, 0)]), "\x00"), " ")
	if whose != fmt.Sprintf("%x", v.byte()) {
		return ""
	}
	return holder
}

// is says whether the file's path still leads to it.
func (f *lockFile) is() (bool, error) {
	st, e := sys.Statx(sys.AtFdcwd, sys.Cname(f.path))
	if e != 0 && e != syscall.ENOENT {
		return false, &fs.PathError{Op: "statx", Path: f.path, Err: e}
	}
	return e == 0 && f.id == volume{st.Dev, st.Ino}, nil
}

// open has the process's lock file, which is in the runtime directory of the system or,
// without the right to it, in that of the user.
func (l *Lock) open() error {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if kept.file == nil {
		l.Unlocked = errors.New("XDG_RUNTIME_DIR is not set")
		var err error
		for _, base := range runtimeDirs() {
			if kept.file, l.Unlocked, err = openLocks(base); l.Unlocked == nil {
				break
			}
		}
		if kept.file == nil {
			return err
		}
	}
	l.file = kept.file
	l.file.users++
	return nil
}

// runtimeDirs are where a lock file may lie, the best first.
func runtimeDirs() (dirs []string) {
	own, system := os.Getenv("XDG_RUNTIME_DIR"), os.Geteuid() == 0
	if system {
		dirs = append(dirs, "/run")
	}
	if own != "" && (!system || ours(own)) {
		dirs = append(dirs, own)
	}
	return dirs
}

// ours says that no other user can write the directory. Root of a user namespace, to whom
// /run is not open, has one; that of the user who became root is not root's.
func ours(dir string) bool {
	var st syscall.Stat_t
	return syscall.Stat(dir, &st) == nil && int(st.Uid) == os.Geteuid() && st.Mode&0o022 == 0
}

// openLocks opens the lock file in the directory for it beneath base. none is why there is
// no such directory.
func openLocks(base string) (f *lockFile, none, err error) {
	dir := base + "/fastlabel"
	path := dir + "/lock"
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(path), sys.OpenLock, 0o600)
	if e == syscall.ENOENT {
		if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
			return nil, err, nil
		}
		fd, e = sys.Openat(sys.AtFdcwd, sys.Cname(path), sys.OpenLock, 0o600)
	}
	if e == 0 {
		st, e := sys.Fstatx(fd)
		if e == 0 {
			return &lockFile{path: path, fd: fd, id: volume{st.Dev, st.Ino}}, nil, nil
		}
		sys.Close(fd)
		return nil, nil, &fs.PathError{Op: "statx", Path: path, Err: e}
	}
	at, none1 := sys.Openat(sys.AtFdcwd, sys.Cname(dir), sys.OpenRead, 0)
	if none1 != 0 {
		return nil, &fs.PathError{Op: "openat", Path: dir, Err: none1}, nil
	}
	sys.Close(at)
	return nil, nil, &fs.PathError{Op: "openat", Path: path, Err: e}
}

// replaceFile has the process open another file: this one was removed, and its byte is no lock.
func (l *Lock) replaceFile() {
	sys.Unlock(l.file.fd, l.id.byte())
	kept.mu.Lock()
	if kept.file == l.file {
		kept.file = nil
	}
	kept.mu.Unlock()
	l.leaveFile()
}

// leaveFile is the end of the lock's use of its file. One that was replaced is closed by its
// last user.
func (l *Lock) leaveFile() {
	if l.file == nil {
		return
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if l.file.users--; l.file.users == 0 && kept.file != l.file {
		sys.Close(l.file.fd)
	}
	l.file = nil
}

// Release lets go of the lock; of none, it does nothing.
func (l *Lock) Release() {
	if l == nil {
		return
	}
	if l.file != nil {
		sys.Unlock(l.file.fd, l.id.byte())
		l.leaveFile()
	}
	process.leave(l.id)
}
