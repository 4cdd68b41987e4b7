// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/sys"
)

// The lock file lies in the runtime directory, which the owner of a volume cannot reach: a lock on
// the volume itself could be taken by its owner for ever. Each volume has a byte of the file, and
// the open file has the lock (fcntl(2), "Open file description locks"): the kernel releases it
// when the process dies, however that dies.
//
// The file is opened once in a process and nobody removes it. If somebody does, one that is made
// anew in its place has locks of its own: so a run that has its byte looks whether the path still
// leads to the file.

// Lock is the lock of one volume: taken, or waited for.
type Lock struct {
	// Unlocked is the reason if there is no place for a lock file. The lock then excludes
	// the runs of this process only.
	Unlocked error
	// After is the Did of the run in this process that this one waited for.
	After string
	// Did names what the run has done by now: see After.
	Did string

	id   volume
	at   int64         // the volume's byte
	turn chan struct{} // closed when the lock is the first of its line
	file *lockFile     // nil: there is none
}

// volume is a volume's root.
type volume struct{ dev, ino uint64 }

// queue has the callers of one process wait in memory, in the order in which they came: only the
// first of a line looks whether another process has the lock. One that leaves wakes the next, and
// no other.
type queue struct {
	mu    sync.Mutex
	lines map[volume][]*Lock // of volumes in use
}

// process is the queue of this process.
var process = queue{lines: make(map[volume][]*Lock)}

// lockFile is an open lock file. Its descriptor is a bare one, which nothing collects.
type lockFile struct {
	path  string
	fd    int
	id    volume // of the file itself
	users int    // guarded by current.mu
}

// current is the lock file for new runs.
var current struct {
	mu   sync.Mutex
	file *lockFile
}

// TakeLock waits for the lock of the volume whose root is at path within ctx, and reports to wait
// once, if it is not nil, who has it.
func TakeLock(ctx context.Context, root sys.Stat, path string, wait func(holder string)) (*Lock, error) {
	id := volume{root.Dev, root.Ino}
	l := &Lock{id: id, at: id.byte()}
	waits := func() {
		if once := wait; once != nil {
			wait = nil
			once(l.signed())
		}
	}
	taken := false
	process.enter(l)
	defer func() {
		if !taken { // also if wait panics
			l.Release()
		}
	}()
	if err := l.await(ctx, waits); err != nil {
		return nil, err
	}
	if err := l.take(ctx, path, waits); err != nil {
		return nil, err
	}
	taken = true
	return l, nil
}

// Release releases the lock; of none, it does nothing.
func (l *Lock) Release() {
	if l == nil {
		return
	}
	l.unlock(false)
	process.leave(l)
}

// enter puts l at the end of its line.
func (q *queue) enter(l *Lock) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lines[l.id]) > 0 {
		l.turn = make(chan struct{})
	}
	q.lines[l.id] = append(q.lines[l.id], l)
}

// leave takes l out of its line. If it was the first, which it may have become just as it gave
// up, the next one has its turn.
func (q *queue) leave(l *Lock) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.lines[l.id], l)
	line := slices.Delete(q.lines[l.id], i, i+1)
	if q.lines[l.id] = line; len(line) == 0 {
		delete(q.lines, l.id)
	} else if i == 0 {
		line[0].After = l.Did
		close(line[0].turn)
	}
}

// quiet is the wait that is not reported: most runs end within that time.
const quiet = time.Millisecond

// await waits for the turn of l, and calls waits if that takes a while.
func (l *Lock) await(ctx context.Context, waits func()) error {
	if l.turn == nil {
		return nil
	}
	wait := time.NewTimer(quiet)
	defer wait.Stop()
	for {
		select {
		case <-l.turn:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-wait.C:
			waits()
		}
	}
}

// take locks the volume's byte. A call that blocks until another process unlocks it would take a
// thread for each volume, and a signal to give it up. So it is asked for again, each time when
// the wait has become longer by a two-hundredth, but for these bounds.
func (l *Lock) take(ctx context.Context, path string, waits func()) error {
	const atFirst, rarely = time.Millisecond, 100 * time.Millisecond
	begin := time.Now()
	for try := 0; ; try++ {
		if locked, err := l.try(); err != nil {
			return err
		} else if locked {
			l.sign(fmt.Sprintf("process %d, relabelling %q", pid, path))
			return nil
		}
		if try == 1 {
			waits()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(max(time.Since(begin)/200, atFirst), rarely)):
		}
	}
}

// try locks the byte in the file to which the path leads, unless another process has it.
func (l *Lock) try() (bool, error) {
	for {
		if l.file == nil {
			if err := l.open(); err != nil || l.Unlocked != nil {
				return err == nil, err
			}
		}
		switch e := sys.TryLock(l.file.fd, l.at); e {
		case 0:
		case syscall.EAGAIN:
			return false, nil
		default:
			return false, &fs.PathError{Op: "fcntl", Path: l.file.path, Err: e}
		}
		if is, err := l.file.is(); is || err != nil { // the policy may refuse it, and would for ever
			return is, err
		}
		l.unlock(true)
	}
}

// unlock releases the byte, and the file. One that was removed, so that its bytes are no locks,
// is not used again, and closed by its last user.
func (l *Lock) unlock(removed bool) {
	if l.file == nil {
		return
	}
	sys.Unlock(l.file.fd, l.at)
	current.mu.Lock()
	defer current.mu.Unlock()
	if removed && current.file == l.file {
		current.file = nil
	}
	if l.file.users--; l.file.users == 0 && current.file != l.file {
		sys.Close(l.file.fd)
	}
	l.file = nil
}

var pid = os.Getpid()

// byte returns the byte of the file that is the volume's. That two have the same is as good as
// excluded, also where a server chooses the number of its root to have one wait for the other.
func (v volume) byte() int64 {
	sum := sha256.Sum256(binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, v.dev), v.ino))
	return int64(binary.NativeEndian.Uint64(sum[:]) >> 2) // with room behind it
}

// A run that has the lock signs in the file, for those that wait: in one of slots lines, each behind
// the byte's number, for another volume's may be written over it.
const (
	slots    = 64
	slotSize = 512
)

func (l *Lock) slot() int64 { return l.at % slots * slotSize }

func (l *Lock) sign(holder string) {
	if l.file == nil {
		return
	}
	line := make([]byte, slotSize)
	copy(line, fmt.Sprintf("%x %s", l.at, holder))
	_, _ = syscall.Pwrite(l.file.fd, line, l.slot())
}

// signed returns who signed last for the volume; "" where that is not known.
func (l *Lock) signed() string {
	current.mu.Lock()
	defer current.mu.Unlock()
	if current.file == nil {
		return ""
	}
	line := make([]byte, slotSize)
	n, _ := syscall.Pread(current.file.fd, line, l.slot()) // -1 beside an error
	holder, is := bytes.CutPrefix(line[:max(n, 0)], fmt.Appendf(nil, "%x ", l.at))
	if !is {
		return ""
	}
	return string(bytes.TrimRight(holder, "\x00"))
}

// is reports whether the file's path still leads to it.
func (f *lockFile) is() (bool, error) {
	st, e := sys.Statx(sys.AtFdcwd, sys.Cname(f.path))
	if e != 0 && e != syscall.ENOENT {
		return false, &fs.PathError{Op: "statx", Path: f.path, Err: e}
	}
	return e == 0 && f.id == volume{st.Dev, st.Ino}, nil
}

// open takes the process's lock file, which is in the runtime directory of the system or,
// without the right to it, in that of the user.
func (l *Lock) open() error {
	current.mu.Lock()
	defer current.mu.Unlock()
	if current.file == nil {
		l.Unlocked = errors.New("XDG_RUNTIME_DIR is not set")
		var err error
		for _, base := range runtimeDirs() {
			if current.file, l.Unlocked, err = openLocks(base); l.Unlocked == nil {
				break
			}
		}
		if current.file == nil {
			return err
		}
	}
	l.file = current.file
	l.file.users++
	return nil
}

// runtimeDirs returns the directories that a lock file may lie in, the best first.
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

// ours reports whether no other user can write the directory. Root of a user namespace, to whom
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
	open := func() (int, sys.Errno) { return sys.Openat(sys.AtFdcwd, sys.Cname(path), sys.OpenLock, 0o600) }
	fd, e := open()
	for try := 0; e == syscall.ENOENT && try < 10; try++ { // somebody may remove it again
		if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
			return nil, err, nil
		}
		fd, e = open()
	}
	if e != 0 {
		at, none := sys.Openat(sys.AtFdcwd, sys.Cname(dir), sys.OpenRead, 0)
		if none != 0 {
			return nil, &fs.PathError{Op: "openat", Path: dir, Err: none}, nil
		}
		sys.Close(at)
		return nil, nil, &fs.PathError{Op: "openat", Path: path, Err: e}
	}
	st, e := sys.Fstatx(fd)
	if e != 0 {
		sys.Close(fd)
		return nil, nil, &fs.PathError{Op: "statx", Path: path, Err: e}
	}
	return &lockFile{path: path, fd: fd, id: volume{st.Dev, st.Ino}}, nil, nil
}
