// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestLockIsNotCollected: no finalizer takes a lock away, though nothing has a
// pointer to it: beside a hung call it is held until that returns.
func TestLockIsNotCollected(t *testing.T) {
	treetest.Need(t, "root")
	l := OpenLocks()
	if l.Err != nil {
		t.Fatal(l.Err)
	}
	defer l.Close()
	root := sys.Stat{Dev: ^uint64(0), Ino: uint64(os.Getpid())}
	name := filepath.Join(l.dir.Name(), fmt.Sprintf("%x-%x", root.Dev, root.Ino))
	defer os.Remove(name) // the second call may have done so
	if _, err := l.Take(t.Context(), root, "test", nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		runtime.GC()
		time.Sleep(20 * time.Millisecond) // for the finalizers
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	held, err := l.Take(ctx, root, "test", nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the lock was let go: %v", err)
	}
	held.Release()
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
	l := openLocks(filepath.Join(dir, "ours"))
	if l.Err != nil || l.dir.Name() != filepath.Join(dir, "ours", "fastlabel") {
		t.Errorf("%v", l)
	}
	l.Close()
}
