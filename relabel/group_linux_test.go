// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/test/treetest"
)

const seventyOne = "default label=" + oldLabel + "\ndir .\ndir d%02d x10\nfile d01/f%02d x30\nfile f%02d x30\n"

// TestGroupOnDisk plays the kubelet, with two requests that end before the tree is done, and one that
// does not: one walk for all.
func TestGroupOnDisk(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	root := grow(t, on(t, "tmpfs"), seventyOne)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	var walks atomic.Int64
	twice := make(chan struct{})
	var g Group
	g.Options.Trace = &Trace{Change: func(path, _, _ string) {
		<-twice
		if path == root {
			if walks.Add(1); g.Pending()[0].Entries != 71 {
				t.Errorf("%+v", g.Pending())
			}
		}
	}}
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		answer := asks(ctx, &g, root, newLabel)
		callers(t, &g, 1)
		cancel()
		if got := <-answer; !errors.Is(got.err, context.Canceled) || !errors.As(got.err, new(*PendingError)) {
			t.Fatal(got.err)
		}
	}
	answer := asks(t.Context(), &g, root, newLabel)
	callers(t, &g, 1) // before the walk can have ended
	close(twice)
	if got := <-answer; got.err != nil || !got.report.Complete || got.report.Written != 71 {
		t.Errorf("%+v", got)
	}
	if n := len(bearing(t, root, newLabel)); walks.Load() != 1 || n != 71 {
		t.Errorf("%d walks, %d labelled", walks.Load(), n)
	}
	nothingLeft(t, goroutines, files)

	if _, err := g.Tree(t.Context(), root, newLabel, SkipNone); err != nil || walks.Load() != 1 {
		t.Errorf("%d walks, %v", walks.Load(), err)
	}
	treetest.Set(t, root, ".", oldLabel)
	if r, err := g.Tree(t.Context(), root, newLabel, SkipNone); err != nil || r.Written == 0 || walks.Load() != 2 {
		t.Errorf("%d walks, %+v, %v", walks.Load(), r, err)
	}
}

// TestGroupTrace: a run has the Trace that is made for its root, and Work says what holds it up,
// also where there is none.
func TestGroupTrace(t *testing.T) {
	var told bytes.Buffer
	log := slog.New(slog.NewTextHandler(&told, nil))
	for _, trace := range []*Trace{LogTo(log, "a"), nil} {
		root, release := called(t, "Trace.Wait")
		g := &Group{Trace: func(at string) *Trace {
			if at != root {
				t.Errorf("made for %s, not %s", at, root)
			}
			return trace
		}}
		answer := asks(t.Context(), g, root, newLabel)
		treetest.Wait(t, "the run waits for the lock", func() bool {
			w := g.Pending()
			return len(w) == 1 && w[0].Waits == "the volume's lock"
		})
		release()
		treetest.Check(t, (<-answer).err)
	}
	if _, text, _ := strings.Cut(told.String(), " "); text != "level=INFO msg=\"waits for another relabel of the volume\" root=a\n" {
		t.Errorf("%s", &told)
	}
}

// TestGroupByMount: a root that is trusted for its own label is one volume by all its mounts, and
// gets one walk. For other callers something else may be mounted beneath.
func TestGroupByMount(t *testing.T) {
	dir := on(t, "tmpfs")
	root, second := grow(t, dir, seventyOne), mkdir(t, dir, "second")
	treetest.Must(t, unix.Mount(root, second, "", unix.MS_BIND, ""))
	defer unix.Unmount(second, 0)
	for s, walks := range map[Skip]int64{SkipRoot: 1, SkipTop: 2, SkipNone: 2} {
		treetest.Set(t, root, ".", oldLabel)
		at := &gate{open: make(chan struct{})}
		g := at.group()
		var all sync.WaitGroup
		for _, path := range []string{root, second} {
			all.Go(func() {
				if r, err := g.Tree(t.Context(), path, newLabel, s); err != nil || !r.Complete || r.Root != path {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}
		callers(t, g, 2)
		close(at.open)
		all.Wait()
		if n := at.walks.Load(); n != walks {
			t.Errorf("skip %v: %d walks", s, n)
		}
	}
}

// TestGroupLimit: with a limit of one the second walk waits for the first, without the volume's lock. A
// root that is trusted does not wait, and who stands still, here at a frozen filesystem, lets the next one walk.
func TestGroupLimit(t *testing.T) {
	frozen := treetest.Fresh(t, "ext4")
	ice := newFreezer(t, frozen)
	dir := on(t, "tmpfs")
	stuck, next, done := grow(t, frozen, seventyOne), grow(t, dir, seventyOne), mkdir(t, dir, "done")
	treetest.Label(t, done, newLabel)
	at := &gate{open: make(chan struct{})}
	g := at.group()
	g.Limit = 1
	ended := make(map[string]int64)
	var mu sync.Mutex
	g.Ended = func(r Report, err error) {
		mu.Lock()
		defer mu.Unlock()
		ended[r.Root] = r.Written
	}
	first := asks(t.Context(), g, stuck, newLabel)
	treetest.Wait(t, "the walk begins", func() bool { return at.asked.Load() > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), treetest.Patience)
	defer cancel()
	second := asks(ctx, g, next, newLabel)
	waits := func() string {
		if w := g.Pending(); len(w) == 2 {
			return w[1].Waits
		}
		return ""
	}
	treetest.Wait(t, "the second waits", func() bool { return waits() == "other volumes" })
	if r, err := g.Tree(t.Context(), done, newLabel, SkipRoot); err != nil || !r.Trusted {
		t.Errorf("%+v, %v", r, err)
	}
	for range 3 * int(run.Limit/run.Every) { // it waits for no filesystem
		time.Sleep(run.Every)
		if w := waits(); w != "other volumes" || at.walks.Load() != 3 {
			t.Errorf("%d runs, the second waits for %q", at.walks.Load(), w)
		}
	}
	if r, err := Tree(t.Context(), next, labelA, &Options{LockTimeout: treetest.Patience}); err != nil || r.Written != 71 {
		t.Errorf("beside a run that waits for its turn: %+v, %v", r, err)
	}
	ice.freeze(t)
	close(at.open)
	if got := <-second; got.err != nil || got.report.Written != 71 {
		t.Errorf("%+v, %v", got.report, got.err)
	}
	ice.thaw(t)
	if got := <-first; got.err != nil || got.report.Written != 71 {
		t.Errorf("%+v, %v", got.report, got.err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := map[string]int64{stuck: 71, next: 71, done: 0}; !maps.Equal(ended, want) {
		t.Errorf("%v", ended)
	}
}
