// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestLockIsNotCollected: no finalizer takes a lock away, though nothing has a
// pointer to it: beside a hung call it is held until that returns.
func TestLockIsNotCollected(t *testing.T) {
	treetest.Need(t, "root")
	root := sys.Stat{Dev: ^uint64(0), Ino: uint64(time.Now().UnixNano())} // it stays in use
	name := func() string {
		l, err := TakeLock(t.Context(), root, "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		return l.path
	}()
	defer os.Remove(name)
	for range 3 {
		runtime.GC()
		time.Sleep(20 * time.Millisecond) // for the finalizers
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // only read
	if e := sys.TryFlock(int(f.Fd())); e != syscall.EWOULDBLOCK {
		t.Errorf("the lock was let go: errno %d", e)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := TakeLock(ctx, root, "test", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the volume was let go: %v", err)
	}
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
		if err := errors.Join(os.Mkdir(at, 0o700), os.Chmod(at, c.mode), os.Chown(at, c.uid, 0)); err != nil {
			t.Fatal(err)
		}
		if ours(at) != c.ours {
			t.Errorf("%s: ours is %t", name, !c.ours)
		}
	}
	if ours(filepath.Join(dir, "missing")) {
		t.Error("a directory that is not there is ours")
	}
	l := Lock{id: volume{1, 2}, fd: -1}
	for range 2 { // again when somebody has removed the directory
		none, err := l.openIn(filepath.Join(dir, "ours"))
		if none != nil || err != nil || l.path != filepath.Join(dir, "ours/fastlabel/1-2") {
			t.Errorf("%+v: %v, %v", l, none, err)
		}
		l.close()
		if err := os.RemoveAll(filepath.Dir(l.path)); err != nil {
			t.Fatal(err)
		}
	}
	if none, err := l.openIn(filepath.Join(dir, "missing")); none == nil || err != nil || l.fd >= 0 {
		t.Errorf("no place for locks: %v, %v", none, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "ours/fastlabel/1-2"), 0o700); err != nil {
		t.Fatal(err)
	}
	if none, err := l.openIn(filepath.Join(dir, "ours")); none != nil || !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a lock that cannot be had: %v, %v", none, err)
	}
}

// TestLockOfOthers: a lock of another process is asked for every 5 ms in the first second,
// then every 100; its holder is told once; and a file that its holder has removed is no lock.
func TestLockOfOthers(t *testing.T) {
	treetest.Need(t, "root")
	root := sys.Stat{Dev: ^uint64(1), Ino: uint64(os.Getpid())}
	for after, within := range map[time.Duration]time.Duration{
		20 * time.Millisecond:  often,
		900 * time.Millisecond: often,
		time.Minute:            rarely,
	} {
		synctest.Test(t, func(t *testing.T) {
			l := Lock{id: volume{root.Dev, root.Ino}, fd: -1}
			if none, err := l.openIn("/run"); none != nil || err != nil { // as another process would
				t.Fatal(none, err)
			}
			if e := sys.TryFlock(l.fd); e != 0 {
				t.Fatal(e)
			}
			l.sign("somebody", 0)
			var lock atomic.Pointer[Lock]
			told, begin := "", time.Now()
			go func() {
				l, err := TakeLock(t.Context(), root, "test", func(holder string) { told += holder })
				if err != nil {
					t.Error(err)
				}
				lock.Store(l)
			}()
			time.Sleep(after)
			if lock.Load() != nil {
				t.Error("two have the lock")
			}
			sys.Unlinkat(sys.AtFdcwd, sys.Cname(l.path))
			l.close()
			time.Sleep(within)
			synctest.Wait()
			held := lock.Load()
			if held == nil || told != "somebody" {
				t.Fatalf("%v after %v: held %t, told %q", time.Since(begin), after, held != nil, told)
			}
			if _, err := os.Stat(held.path); err != nil {
				t.Error("the file that was removed is held")
			}
			held.Release()
			if _, err := os.Stat(held.path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a lock file is left: %v", err)
			}
		})
	}
}
