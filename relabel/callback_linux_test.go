// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/caller"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
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
		return Options{Trace: &Trace{Note: func(string) { f() }}}
	},
	"Trace.Wait": func(f func()) Options { return Options{Trace: &Trace{Wait: func(string) { f() }}} },
	"Throttle":   func(f func()) Options { return Options{Throttle: func(context.Context, int) error { f(); return nil }} },
}

// called grows a tree on which the callback named so is called, and says how the
// lock is let go that it may wait for.
func called(t *testing.T, name string) (root string, release func()) {
	t.Helper()
	root = grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir d%d x5\nfile d1/f%03d x200\ndir m\nmount m tmpfs\nfile m/f\n")
	release = func() {}
	switch name {
	case "Trace.Failure":
		path := filepath.Join(root, "d1", "f007")
		immutable(t, path, true)
		t.Cleanup(func() { immutable(t, path, false) })
	case "Trace.Note":
		dir, at := on(t, "tmpfs"), filepath.Join(root, "m")
		data := "lowerdir=" + mkdir(t, dir, "low") + ",upperdir=" + mkdir(t, dir, "up") + ",workdir=" + mkdir(t, dir, "work")
		if err := unix.Mount("test", at, "overlay", 0, data); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
	case "Trace.Wait":
		l := commit.OpenLocks()
		st, _ := sys.Statx(sys.AtFdcwd, sys.Cname(root))
		held, err := l.Take(t.Context(), st, root, nil)
		if err != nil {
			t.Fatal(err)
		}
		release = func() {
			held.Release()
			l.Close()
		}
	}
	return root, release
}

// TestCallbackBlocks: a callback that does not return keeps no run from ending when
// it is stopped, and the run then holds nothing.
func TestCallbackBlocks(t *testing.T) {
	roots, releases := map[string]string{}, map[string]func(){}
	for name := range callbacks {
		roots[name], releases[name] = called(t, name)
	}
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	back := make(chan bool)
	var all sync.WaitGroup
	for name, options := range callbacks {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := options(func() {
				cancel()
				<-back
			})
			r, err := Tree(ctx, roots[name], newLabel, &o)
			adds(t, r)
			var hung *HungError
			if !errors.As(err, &hung) || hung.Calls[0].Call != caller.Code+name || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			releases[name]()
		})
	}
	all.Wait()
	until(t, "files are closed", func() bool { return openFiles(t) < files })
	for name, root := range roots { // at once: each waits a second for a run whose claim it finds
		all.Go(func() {
			if _, err := Tree(t.Context(), root, labelA, nil); err != nil && name != "Trace.Failure" {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	close(back)
	nothingLeft(t, goroutines, files)
}

// TestStallBlocks: Trace.Stall too, which no goroutine of the run waits for.
func TestStallBlocks(t *testing.T) {
	vol := treetest.Fresh(t, "ext4")
	root := grow(t, vol, "default label="+oldLabel+"\ndir .\nfile f\n") // of more, each worker that relieves another would hang too
	ice := newFreezer(t, vol)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	back := make(chan bool)
	_, err := Tree(ctx, root, newLabel, &Options{
		Throttle: func(context.Context, int) error { once.Do(func() { ice.freeze(t) }); return nil },
		Trace: &Trace{Stall: func([]HungCall) {
			cancel()
			<-back
		}},
	})
	var hung *HungError
	if !errors.As(err, &hung) || hung.Calls[0].Call != caller.Code+"Trace.Stall" {
		t.Error(err)
	}
	ice.thaw(t)
	close(back)
	nothingLeft(t, goroutines, files)
}

// ends calls f in a goroutine, and says how that ended.
func ends(f func()) (returned bool, value any) {
	var all sync.WaitGroup
	all.Go(func() {
		defer func() { value = recover() }()
		f()
		returned = true
	})
	all.Wait()
	return returned, value
}

// TestCallbackPanics: what a callback does to its goroutine happens to the one that
// called Tree, when the run has ended and its root vouches for nothing.
func TestCallbackPanics(t *testing.T) {
	for name, options := range callbacks {
		for what, blow := range map[string]func(){"panic": func() { panic(errors.ErrUnsupported) }, "Goexit": runtime.Goexit} {
			root, release := called(t, name)
			goroutines, files := runtime.NumGoroutine(), openFiles(t)
			if name == "Trace.Wait" { // the lock is released in it
				was := blow
				blow = func() { release(); was() }
				files -= 2
			}
			var once sync.Once
			o := options(func() { once.Do(blow) })
			returned, value := ends(func() { _, _ = Tree(t.Context(), root, newLabel, &o) })
			p, _ := value.(*PanicError)
			switch {
			case what == "Goexit" && (returned || value != nil):
				t.Errorf("%s, %s: returned %t, panicked %v", name, what, returned, value)
			case what == "panic" && (p == nil || p.Callback != name || !errors.Is(p, errors.ErrUnsupported) || !strings.Contains(p.Error(), "callback_linux_test.go")):
				t.Errorf("%s, %s: panicked %v", name, what, value)
			}
			if labelOf(t, root) == newLabel {
				t.Errorf("%s, %s: the root vouches", name, what)
			}
			nothingLeft(t, goroutines, files)
			if _, err := Tree(t.Context(), root, newLabel, nil); err != nil && name != "Trace.Failure" {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}

// TestCallbackPanicsLast: also in the last callback of all, after the commit, and
// where the root was right before.
func TestCallbackPanicsLast(t *testing.T) {
	for _, rootLabel := range []string{oldLabel, newLabel} {
		root := grow(t, on(t, "tmpfs"), plain)
		treetest.Set(t, root, ".", rootLabel)
		goroutines, files := runtime.NumGoroutine(), openFiles(t)
		_, value := ends(func() {
			_, _ = Tree(t.Context(), root, newLabel, &Options{Trace: &Trace{Change: func(path, _, _ string) {
				if path == root || rootLabel == newLabel {
					panic("last")
				}
			}}})
		})
		if p, _ := value.(*PanicError); p == nil || p.Value != "last" || labelOf(t, root) == newLabel {
			t.Errorf("%v; the root has %s", value, labelOf(t, root))
		}
		nothingLeft(t, goroutines, files)
	}
}

// TestGroupPanics: each caller who waits panics; where none does, one who comes back
// has an error.
func TestGroupPanics(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), seventyOne)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	begin := make(chan bool)
	g := Group{Options: Options{Throttle: func(context.Context, int) error {
		<-begin
		panic("boom")
	}}}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			_, value := ends(func() { _, _ = g.Tree(t.Context(), root, newLabel, TrustNothing) })
			if p, _ := value.(*PanicError); p == nil || p.Value != "boom" {
				t.Errorf("panicked %v", value)
			}
		})
	}
	callers(t, &g, 5)
	close(begin)
	all.Wait()
	begin = make(chan bool)
	ctx, cancel := context.WithCancel(t.Context())
	left := asks(ctx, &g, root, newLabel)
	callers(t, &g, 1)
	cancel()
	if got := <-left; !errors.As(got.err, new(*PendingError)) {
		t.Error(got.err)
	}
	close(begin)
	until(t, "the run ends", func() bool { return len(g.Work()) == 0 })
	var p *PanicError
	if _, err := g.Tree(t.Context(), root, newLabel, TrustNothing); !errors.As(err, &p) || p.Value != "boom" {
		t.Error(err)
	}
	nothingLeft(t, goroutines, files)
}
