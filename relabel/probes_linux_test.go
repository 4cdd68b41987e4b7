// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestProbeDead probes 300 times for volumes that do not answer, where the process may
// have 256 descriptors.
func TestProbeDead(t *testing.T) {
	treetest.Need(t, "root", "fuse")
	apart(t, "probe dead", on(t, "tmpfs"))
}

// dead mounts a FUSE filesystem at dir that does not answer until revive is called.
func dead(t *testing.T, dir string) (revive func()) {
	t.Helper()
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	treetest.Must(t, err)
	revive = sync.OnceFunc(func() { _ = syscall.Close(fd) }) // each call then fails
	if err := syscall.Mount("dead", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)); err != nil {
		revive()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		revive()
		treetest.Check(t, syscall.Unmount(dir, syscall.MNT_DETACH))
	})
	return revive
}

func probeDead(t *testing.T, dir string) {
	few := syscall.Rlimit{Cur: 256, Max: 256}
	treetest.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	healthy, one := grow(t, mkdir(t, dir, "healthy"), plain), mkdir(t, dir, "one")
	if _, err := isLabelled(healthy, newLabel, SkipRoot); err != nil { // what a process opens once is open
		t.Fatal(err)
	}
	revive := dead(t, one)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	var all sync.WaitGroup
	var refused atomic.Int64
	var revived atomic.Bool
	const each = 3 // descriptors of one that hangs
	hangs := func() int {
		_, _, open := process.Taken()
		return open / each
	}
	const calls = 300
	for i := range calls {
		all.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = isLabelled(one, newLabel, SkipTop)
			} else {
				_, err = isInterrupted(one, newLabel)
			}
			hung := new(HungError)
			switch is := errors.As(err, &hung); {
			case is && len(hung.Calls) == 1 && hung.Calls[0] == (HungCall{"Inspect", one}) && strings.Contains(err.Error(), " earlier calls have not returned; still waiting for the filesystem: "):
				refused.Add(1)
			case is || !revived.Load() || err == nil:
				t.Errorf("call %d: %v", i, err)
				refused.Add(1)
			}
		})
	}
	treetest.Wait(t, "each hangs or has failed", func() bool { return hangs()+int(refused.Load()) == calls })
	if n := hangs(); n < 4 || n >= 4+16 { // those that begin in the second before four count as hung
		t.Errorf("%d hang", n)
	}
	if is, err := isLabelled(healthy, newLabel, SkipRoot); is || err != nil {
		t.Errorf("beside calls that hang: %t, %v", is, err)
	}
	taken(t, each*(calls-int(refused.Load())))
	if r, err := new(Group).Tree(t.Context(), healthy, newLabel, SkipNone); err != nil || !r.Complete {
		t.Errorf("beside calls that hang: %+v, %v", r, err)
	}
	revived.Store(true)
	revive()
	all.Wait()
	treetest.Wait(t, "none hangs", func() bool { return hangs() == 0 })
	nothingLeft(t, goroutines, files)
	taken(t, 0)
	if _, err := isLabelled(one, newLabel, SkipRoot); err == nil || errors.As(err, new(*HungError)) {
		t.Errorf("when all have returned: %v", err)
	}
}

// TestHomeDead: where the caller's home or an exclusion does not answer, a run still ends with its
// context, and says what it waits for; so do those that wait for its look.
func TestHomeDead(t *testing.T) {
	treetest.Need(t, "root", "fuse")
	dir := on(t, "tmpfs")
	root, home, excluded := grow(t, mkdir(t, dir, "root"), plain), mkdir(t, dir, "home"), mkdir(t, dir, "excluded")
	t.Setenv("HOME", home)
	ends := func(o *Options, on ...string) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		o.Progress = new(Progress)
		go func() {
			for s, _ := o.Progress.State(); s.Call != "statx" && ctx.Err() == nil; s, _ = o.Progress.State() {
				time.Sleep(time.Millisecond)
			}
			cancel(context.DeadlineExceeded)
		}()
		_, err := Tree(ctx, root, newLabel, o)
		cancel(nil) // whatever ended it
		if hung := new(HungError); !errors.As(err, &hung) || !errors.Is(err, context.DeadlineExceeded) || len(hung.Calls) != 1 || !slices.Contains(on, hung.Calls[0].Path) {
			t.Errorf("%v, not a call that hangs on %v", err, on)
		}
	}
	revive := dead(t, excluded)
	ends(&Options{Exclude: []string{excluded}}, excluded)
	revive()
	revive = dead(t, home)
	ends(&Options{}, home)
	ends(&Options{}, home, "/home or another refused place")
	revive()
	treetest.Wait(t, "nothing hangs", func() bool { _, _, open := process.Taken(); return open == 0 })
	if r, err := Tree(t.Context(), root, newLabel, nil); err != nil || !r.Complete {
		t.Errorf("when they have returned: %+v, %v", r, err)
	}
}
