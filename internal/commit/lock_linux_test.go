// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }

// TestLockIsNotCollected: no finalizer takes a lock away, though nothing has a
// pointer to it: beside a hung call it is held until that returns.
func TestLockIsNotCollected(t *testing.T) {
	treetest.Need(t, "root")
	root := sys.Stat{Dev: ^uint64(0), Ino: uint64(time.Now().UnixNano())} // it stays in use
	_, err := TakeLock(t.Context(), root, nil)
	treetest.Must(t, err)
	for range 3 {
		runtime.GC()
		time.Sleep(20 * time.Millisecond) // for the finalizers
	}
	if another(t, volume{root.Dev, root.Ino}.byte()) >= 0 {
		t.Error("the lock was let go")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := TakeLock(ctx, root, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the volume was let go: %v", err)
	}
}

// another locks the byte as another process does; -1: it is locked.
func another(t *testing.T, at int64) (fd int) {
	t.Helper()
	fd, none, err := lockIn("/run", at)
	if none != nil || err != nil && !errors.Is(err, syscall.EAGAIN) {
		t.Fatal(none, err)
	}
	return fd
}

// TestLocksOfUser: root to whom /run is not open has the directory of its own user, and
// never that of another one.
func TestLocksOfUser(t *testing.T) {
	treetest.Need(t, "root")
	dir := t.TempDir()
	for name, c := range map[string]struct {
		mode os.FileMode
		uid  int
		ours bool
	}{
		"ours":            {0o700, 0, true},
		"another user's":  {0o700, 1000, false},
		"open to a group": {0o770, 0, false},
		"open to all":     {0o1777, 0, false},
	} {
		at := filepath.Join(dir, name)
		treetest.Must(t, os.Mkdir(at, 0o700), os.Chmod(at, c.mode), os.Chown(at, c.uid, 0))
		if ours(at) != c.ours {
			t.Errorf("%s: ours is %t", name, !c.ours)
		}
	}
	if ours(filepath.Join(dir, "missing")) {
		t.Error("a directory that is not there is ours")
	}
	for range 2 { // again when somebody has removed the directory
		fd, none, err := lockIn(filepath.Join(dir, "ours"), 1)
		treetest.Must(t, none, err, os.RemoveAll(filepath.Join(dir, "ours/fastlabel")))
		sys.Close(fd)
	}
	if fd, none, err := lockIn(filepath.Join(dir, "missing"), 1); fd >= 0 || none == nil || err != nil {
		t.Errorf("no place for locks: %v, %v", none, err)
	}
	treetest.Must(t, os.MkdirAll(filepath.Join(dir, "ours/fastlabel/lock"), 0o700))
	if fd, none, err := lockIn(filepath.Join(dir, "ours"), 1); fd >= 0 || none != nil || !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a lock that cannot be had: %v, %v", none, err)
	}
}

// TestLockWithoutDescriptors: where no file can be opened, the lock is not taken for one that
// there is no place for: another may have it.
func TestLockWithoutDescriptors(t *testing.T) {
	treetest.Need(t, "root")
	sys.Close(another(t, 1)) // makes the directory
	var was unix.Rlimit
	treetest.Must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was), unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: was.Max}))
	fd, none, err := lockIn("/run", 1)
	treetest.Must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
	if fd >= 0 || none != nil || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("%d, %v, %v", fd, none, err)
	}
}

// TestLockReleased: a released lock is free, also where a child that was just forked, and has not
// begun its program, has the open file too.
func TestLockReleased(t *testing.T) {
	treetest.Need(t, "root")
	root := sys.Stat{Dev: ^uint64(2), Ino: uint64(os.Getpid())}
	l, err := TakeLock(t.Context(), root, nil)
	treetest.Must(t, err)
	copied, err := unix.Dup(l.fd)
	treetest.Must(t, err)
	defer sys.Close(copied)
	l.Release()
	again, err := TakeLock(t.Context(), root, func() { t.Error("it waits") })
	treetest.Must(t, err)
	again.Release()
}

// TestLockOfOthers: a lock of another process is asked for every 5 ms in the first second,
// and later every 100; that is told once. Two volumes do not wait for each other.
func TestLockOfOthers(t *testing.T) {
	treetest.Need(t, "root")
	id := volume{^uint64(1), uint64(os.Getpid())}
	for after, within := range map[time.Duration]time.Duration{
		20 * time.Millisecond:  time.Millisecond,
		900 * time.Millisecond: 5 * time.Millisecond,
		time.Minute:            100 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			other := another(t, id.byte())
			beside, err := TakeLock(t.Context(), sys.Stat{Dev: id.dev, Ino: id.ino + 1<<32}, func() { t.Error("it waits for another volume") })
			treetest.Must(t, err)
			beside.Release()
			var lock atomic.Pointer[Lock]
			told, begin := 0, time.Now()
			go func() {
				l, err := TakeLock(t.Context(), sys.Stat{Dev: id.dev, Ino: id.ino}, func() { told++ })
				treetest.Check(t, err)
				lock.Store(l)
			}()
			time.Sleep(after)
			if lock.Load() != nil {
				t.Error("two have the lock")
			}
			sys.Close(other)
			time.Sleep(within)
			synctest.Wait()
			held := lock.Load()
			if held == nil || told != 1 {
				t.Fatalf("%v after %v: held %t, told %d times", time.Since(begin), after, held != nil, told)
			}
			if another(t, id.byte()) >= 0 {
				t.Error("the lock is not held")
			}
			held.Release()
			if other = another(t, id.byte()); other < 0 {
				t.Error("the lock was not let go")
			}
			sys.Close(other)
		})
	}
}

// TestLockRemoved: a run that waits takes the lock of the file that is there by then.
func TestLockRemoved(t *testing.T) {
	treetest.Need(t, "root")
	// In a /run of its own: another process may have locks in that file.
	treetest.Must(t, unix.Mount(treetest.Fresh(t, "tmpfs"), "/run", "", unix.MS_BIND, ""))
	defer func() { treetest.Check(t, unix.Unmount("/run", 0)) }()
	id := volume{^uint64(2), uint64(os.Getpid())}
	synctest.Test(t, func(t *testing.T) {
		defer sys.Close(another(t, id.byte()))
		var lock atomic.Pointer[Lock]
		go func() {
			l, err := TakeLock(t.Context(), sys.Stat{Dev: id.dev, Ino: id.ino}, nil)
			treetest.Check(t, err)
			lock.Store(l)
		}()
		time.Sleep(time.Minute)
		if lock.Load() != nil {
			t.Error("two have the lock")
		}
		treetest.Must(t, os.Remove("/run"+lockFile))
		time.Sleep(time.Second)
		synctest.Wait()
		if lock.Load() == nil || another(t, id.byte()) >= 0 {
			t.Error("it has no lock of the file that is there")
		}
		lock.Load().Release()
	})
}

// line is a volume for which callers wait.
type line struct{ volume }

// newLine returns a volume that nobody else has: another process may run this test too.
func newLine(n uint64) line { return line{volume{^n, uint64(os.Getpid())}} }

func (v line) waiting() []*Lock { return process.lines[v.volume] }

// take has a caller wait behind the others, and call has with the lock.
func (v line) take(ctx context.Context, does string, waits func(), has func(*Lock)) {
	go func() {
		defer func() { _ = recover() }()
		if l, err := TakeLock(ctx, sys.Stat{Dev: v.dev, Ino: v.ino}, waits); err == nil {
			l.Did = does
			has(l)
		}
	}()
	synctest.Wait() // so that they come in this order
}

// TestQueue: a thousand callers have their turns in the order in which they came. Who
// leaves wakes one, and no clock any.
func TestQueue(t *testing.T) {
	treetest.Need(t, "root")
	const callers = 1000
	synctest.Test(t, func(t *testing.T) {
		v := newLine(3)
		var turns []int
		var told atomic.Int64
		for i := range callers + 1 {
			v.take(t.Context(), "", func() { told.Add(1) }, func(*Lock) { turns = append(turns, i) })
		}
		newLine(6).take(t.Context(), "", nil, (*Lock).Release)
		if told.Load() != 0 {
			t.Errorf("%d were told at once", told.Load())
		}
		time.Sleep(time.Hour)
		if told.Load() != callers || len(turns) != 1 {
			t.Errorf("%d were told of %d, %d have a turn", told.Load(), callers, len(turns))
		}
		for i := range callers {
			begin := time.Now()
			v.waiting()[0].Release()
			synctest.Wait()
			if len(turns) != i+2 || turns[i+1] != i+1 || !time.Now().Equal(begin) {
				t.Fatalf("%d left: the last turn of %d is %d's", i+1, len(turns), turns[len(turns)-1])
			}
		}
		if v.waiting()[0].Release(); v.waiting() != nil {
			t.Error("the line is left")
		}
	})
}

// TestQueueDid: a caller is told what the one did for whom he waited, and not what was done
// before he came, or by one who gave up.
func TestQueueDid(t *testing.T) {
	treetest.Need(t, "root")
	synctest.Test(t, func(t *testing.T) {
		v := newLine(4)
		var after []string
		take := func(does string) {
			v.take(t.Context(), does, nil, func(l *Lock) { after = append(after, l.After) })
		}
		leave := func() {
			v.waiting()[0].Release()
			synctest.Wait()
		}
		take("a")
		take("a2")
		take("b")
		leave()
		leave()
		process.enter(&Lock{id: v.volume}) // it never has the lock: c may have come after b had left
		take("c")
		leave()
		leave()
		leave()
		if !slices.Equal(after, []string{"", "a", "a2", ""}) {
			t.Errorf("%q", after)
		}
	})
}

// TestQueueQuits: who gives up, or panics when it is told, or gives up just when its turn
// comes, holds up nobody.
func TestQueueQuits(t *testing.T) {
	treetest.Need(t, "root")
	synctest.Test(t, func(t *testing.T) {
		v := newLine(5)
		turns := 0
		leave := func(l *Lock) { turns++; l.Release() }
		v.take(t.Context(), "", nil, func(*Lock) {})
		first := v.waiting()[0]
		v.take(t.Context(), "", func() { panic("told") }, leave)
		ctx, cancel := context.WithCancel(t.Context())
		for range 10 {
			v.take(ctx, "", nil, leave)
			v.take(t.Context(), "", nil, leave)
		}
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		if n := len(v.waiting()); n != 11 || turns != 0 {
			t.Errorf("%d wait of 10, %d had a turn", n-1, turns)
		}
		first.Release()
		synctest.Wait()
		if turns != 10 || v.waiting() != nil {
			t.Errorf("%d had a turn of 10", turns)
		}
		// The turn and the end of the context at once: select takes either.
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			v.take(t.Context(), "", nil, func(*Lock) {})
			first := v.waiting()[0]
			v.take(ctx, "", nil, leave)
			cancel()
			first.Release()
			synctest.Wait()
			if v.waiting() != nil {
				t.Fatal("a turn is lost")
			}
		}
	})
}
