// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/internal/commit"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// callbacks are runs in which f is called as the callback named so; hold makes a
// volume wait.
var callbacks = map[string]func(f func()) Options{
	"Trace.Change":  func(f func()) Options { return Options{Trace: &Trace{Change: func(string, string, string) { f() }}} },
	"Trace.Failure": func(f func()) Options { return Options{Trace: &Trace{Failure: func(error) { f() }}} },
	"Trace.Skip": func(f func()) Options {
		return Options{Trace: &Trace{Skip: func(string, string) { f() }}, OneFilesystem: true}
	},
	"Trace.Note": func(f func()) Options {
		return Options{Trace: &Trace{Note: func(string) { f() }}, Sync: true} // a FIFO is on no disk
	},
	"Trace.Wait": func(f func()) Options { return Options{Trace: &Trace{Wait: f}} },
	"Throttle":   func(f func()) Options { return Options{Throttle: func(context.Context, int) error { f(); return nil }} },
}

// called grows a tree on which the callback named so is called, and says how the
// lock is let go that it may wait for.
func called(t *testing.T, name string) (root string, release func()) {
	t.Helper()
	root = grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir d%d x5\nfile d1/f%03d x200\ndir m\nmount m tmpfs\nfile m/f\nfifo p\n")
	release = func() {}
	switch name {
	case "Trace.Failure":
		path := filepath.Join(root, "d1", "f007")
		immutable(t, path, true)
		t.Cleanup(func() { immutable(t, path, false) })
	case "Trace.Note":
		bind(t, filepath.Join(grow(t, mkdir(t, on(t, "ext4"), "m"), "dir .\nfifo p\n"), "p"), filepath.Join(root, "p"))
	case "Trace.Wait":
		st, _ := sys.Statx(sys.AtFdcwd, sys.Cname(root))
		held, err := commit.TakeLock(t.Context(), st, nil)
		treetest.Must(t, err)
		release = held.Release
	}
	return root, release
}

// panics calls f, and returns what it panics with, nil if it does not.
func panics(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// TestCallbackPanics: a panic in a callback goes on in the goroutine that called Tree, when
// the run has ended and its root is sealed.
func TestCallbackPanics(t *testing.T) {
	for name, options := range callbacks {
		root, release := called(t, name)
		goroutines, files := runtime.NumGoroutine(), openFiles(t)
		calls := 0
		o := options(func() {
			if calls++; calls == 1 {
				release() // the lock that Trace.Wait tells of
				panic(errors.ErrUnsupported)
			}
		})
		o.Workers = 1 // Throttle is called by each
		err, _ := panics(func() { _, _ = Tree(t.Context(), root, newLabel, &o) }).(error)
		if !errors.Is(err, errors.ErrUnsupported) || calls != 1 {
			t.Errorf("%s: panicked %v after %d calls", name, err, calls)
		}
		if name == "Throttle" && !strings.Contains(err.Error(), "callback_linux_test.go") {
			t.Errorf("%s: the panic does not say where: %v", name, err)
		}
		if labelOf(t, root) == newLabel {
			t.Errorf("%s: the root has the label", name)
		}
		nothingLeft(t, goroutines, files)
		if _, err := Tree(t.Context(), root, newLabel, nil); err != nil && name != "Trace.Failure" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCallbackPanicsLast: also in the last callback of all, after the commit, of a root that
// need not be read again, and where the root was right before.
func TestCallbackPanicsLast(t *testing.T) {
	for _, rootLabel := range []string{oldLabel, newLabel} {
		root := grow(t, on(t, "tmpfs"), plain)
		treetest.Set(t, root, ".", rootLabel)
		time.Sleep(50 * time.Millisecond) // or it could have changed
		goroutines, files := runtime.NumGoroutine(), openFiles(t)
		value := panics(func() {
			_, _ = Tree(t.Context(), root, newLabel, &Options{Trace: &Trace{Change: func(path, _, _ string) {
				if path == root || rootLabel == newLabel {
					panic("last")
				}
			}}})
		})
		if value != "last" || labelOf(t, root) == newLabel {
			t.Errorf("%s: %v; the root has %s", rootLabel, value, labelOf(t, root))
		}
		nothingLeft(t, goroutines, files)
	}
}

// TestCallbackElsewhere: no callback runs on a thread whose working directory is in the
// volume, whose owner chooses what a relative path is there.
func TestCallbackElsewhere(t *testing.T) {
	for engine, m := range engines() {
		root := grow(t, on(t, "tmpfs"), plain)
		calls := 0
		look := func() {
			calls++
			if at, err := os.Readlink("/proc/thread-self/cwd"); err != nil || strings.HasPrefix(at, root) {
				t.Errorf("%s: the working directory is %s, %v", engine, at, err)
			}
		}
		var mu sync.Mutex
		_, err := tree(t.Context(), root, newLabel, Options{
			Throttle: func(context.Context, int) error { mu.Lock(); defer mu.Unlock(); look(); return nil },
			Trace:    &Trace{Change: func(string, string, string) { mu.Lock(); defer mu.Unlock(); look() }},
		}, as(m))
		if err != nil || calls < 46 {
			t.Errorf("%s: %d calls, %v", engine, calls, err)
		}
	}
}

// TestGroupPanics: each caller who waits panics, also where the Trace cannot be had; where none
// waits, one who comes back does.
func TestGroupPanics(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), seventyOne)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	begin := make(chan bool)
	g := Group{Options: Options{Throttle: func(context.Context, int) error {
		<-begin
		panic("boom")
	}}}
	boom := func() {
		value := panics(func() { _, _ = g.Tree(t.Context(), root, newLabel, SkipNone) })
		if !strings.Contains(fmt.Sprint(value), "boom") {
			t.Errorf("panicked %v", value)
		}
	}
	var all sync.WaitGroup
	for range 5 {
		all.Go(boom)
	}
	callers(t, &g, 5)
	close(begin)
	all.Wait()
	g.Trace = func(string) *Trace { panic("boom") }
	boom()
	g.Trace = nil
	begin = make(chan bool)
	ctx, cancel := context.WithCancel(t.Context())
	left := asks(ctx, &g, root, newLabel)
	callers(t, &g, 1)
	cancel()
	if got := <-left; !errors.As(got.err, new(*PendingError)) {
		t.Error(got.err)
	}
	close(begin)
	treetest.Wait(t, "the run ends", func() bool { return len(g.Pending()) == 0 })
	boom()
	nothingLeft(t, goroutines, files)
}
