// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/sys"
)

// The lock file lies in the runtime directory, which the owner of a volume cannot reach: a lock on
// the volume itself could be taken by its owner for ever. Each volume has a byte of the file, and
// the open file has the lock (fcntl(2), "Open file description locks"): the kernel releases it
// when the process dies. Each look at the lock opens the file anew, and nobody removes it.

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
	fd   int           // the lock file, a bare descriptor that nothing collects; -1: not locked
}

type volume struct{ dev, ino uint64 }

// queue has the callers of one process wait in memory, in the order in which they came: only the
// first of a line looks whether another process has the lock. One that leaves wakes the next, and
// no other.
type queue struct {
	mu    sync.Mutex
	lines map[volume][]*Lock // of volumes in use
}

var process = queue{lines: make(map[volume][]*Lock)}

// TakeLock waits for the lock of the volume that has the root within ctx, and calls wait once, if it
// is not nil and another has the lock.
func TakeLock(ctx context.Context, root sys.Stat, wait func()) (*Lock, error) {
	id := volume{root.Dev, root.Ino}
	l := &Lock{id: id, at: id.byte(), fd: -1}
	if wait == nil {
		wait = func() {}
	}
	waits, taken := sync.OnceFunc(wait), false
	process.enter(l)
	defer func() {
		if !taken { // also if wait panics
			l.Release()
		}
	}()
	err := l.await(ctx, waits)
	if err == nil {
		err = l.take(ctx, waits)
	}
	if err != nil {
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
	if l.fd >= 0 {
		sys.Unlock(l.fd, l.at) // a child that has not begun its program has the file too
		sys.Close(l.fd)
	}
	process.leave(l)
}

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
func (l *Lock) take(ctx context.Context, waits func()) error {
	const atFirst, rarely = time.Millisecond, 100 * time.Millisecond
	begin := time.Now()
	for try := 0; ; try++ {
		if locked, err := l.try(); locked || err != nil {
			return err
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

// try locks the byte in the best lock file there is, unless another process has it.
func (l *Lock) try() (locked bool, err error) {
	l.Unlocked = errors.New("XDG_RUNTIME_DIR is not set")
	for _, base := range runtimeDirs() {
		if l.fd, l.Unlocked, err = lockIn(base, l.at); l.Unlocked == nil {
			break
		}
	}
	if errors.Is(err, syscall.EAGAIN) {
		return false, nil
	}
	return err == nil, err
}

// byte returns the byte of the file that is the volume's. That two have the same is as good as
// excluded, also where a server chooses the number of its root to have one wait for the other.
func (v volume) byte() int64 {
	sum := sha256.Sum256(binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, v.dev), v.ino))
	return int64(binary.NativeEndian.Uint64(sum[:]) >> 2) // with room behind it
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

// lockFile is its path beneath a runtime directory.
const lockFile = "/fastlabel/lock"

// lockIn locks the byte at of the lock file beneath base. none is why there is no directory for
// one; err is EAGAIN where another process has the lock.
func lockIn(base string, at int64) (fd int, none, err error) {
	path := base + lockFile
	dir := filepath.Dir(path)
	open := func() (int, sys.Errno) { return sys.Openat(sys.AtFdcwd, sys.Cname(path), sys.OpenLock, 0o600) }
	fd, e := open()
	for try := 0; e == syscall.ENOENT && try < 10; try++ { // somebody may remove it again
		if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
			return -1, err, nil
		}
		fd, e = open()
	}
	if e != 0 {
		switch d, none := sys.Openat(sys.AtFdcwd, sys.Cname(dir), sys.OpenRead, 0); none {
		case 0:
			sys.Close(d)
		case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM: // the lock may be there, and another have it
		default:
			return -1, &fs.PathError{Op: "openat", Path: dir, Err: none}, nil
		}
		return -1, nil, &fs.PathError{Op: "openat", Path: path, Err: e}
	}
	if e := sys.TryLock(fd, at); e != 0 {
		sys.Close(fd)
		return -1, nil, &fs.PathError{Op: "fcntl", Path: path, Err: e}
	}
	return fd, nil, nil
}
