// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

const seventyOne = "default label=" + oldLabel + "\ndir .\ndir d%02d x10\nfile d01/f%02d x30\nfile f%02d x30\n"

// TestGroupOnDisk plays the kubelet on a tree of 71 entries that takes 10 ms for
// each, with requests of 200 ms: one walk, and each retry is answered in time.
func TestGroupOnDisk(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	root := grow(t, on(t, "tmpfs"), seventyOne)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	var walks atomic.Int64
	g := Group{Options: Options{OnChange: func(path, _ string) {
		time.Sleep(10 * time.Millisecond)
		if path == root {
			walks.Add(1)
		}
	}}}
	var left int
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		begin := time.Now()
		r, err := g.Tree(ctx, root, newLabel)
		took := time.Since(begin)
		cancel()
		if err == nil {
			if adds(t, r); !r.Complete || r.Written != 71 {
				t.Errorf("%+v", r)
			}
			break
		}
		var p *Pending
		if left++; !errors.As(err, &p) || !errors.Is(err, context.DeadlineExceeded) || took > time.Second {
			t.Fatalf("after %v: %v", took, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if n := len(bearing(t, root, newLabel)); walks.Load() != 1 || left < 2 || n != 71 {
		t.Errorf("%d walks, %d retries, %d labelled", walks.Load(), left, n)
	}
	ended(t, goroutines)
	if n := openFiles(t); n != files {
		t.Errorf("%d open files, %d before", n, files)
	}

	// What it kept is worth nothing once somebody else has relabelled the root.
	if _, err := g.Tree(t.Context(), root, newLabel); err != nil || walks.Load() != 1 {
		t.Errorf("%d walks, %v", walks.Load(), err)
	}
	treetest.Set(t, root, ".", oldLabel)
	if r, err := g.Tree(t.Context(), root, newLabel); err != nil || r.Written == 0 || walks.Load() != 2 {
		t.Errorf("%d walks, %+v, %v", walks.Load(), r, err)
	}
}

// TestGroupBindMount: a thousand callers by the paths of two mounts, one walk.
func TestGroupBindMount(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\nfile f%d x9\n")
	other := mkdir(t, filepath.Dir(root), "other")
	bind(t, root, other)
	goroutines := runtime.NumGoroutine()
	var walks atomic.Int64
	g := Group{Options: Options{OnChange: func(path, _ string) {
		if time.Sleep(10 * time.Millisecond); slices.Contains([]string{root, other}, path) {
			walks.Add(1)
		}
	}}}
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			path := []string{root, other}[i%2]
			if r, err := g.Tree(t.Context(), path, newLabel); err != nil || !r.Complete || r.Root != path {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	all.Wait()
	if n := len(bearing(t, root, newLabel)); walks.Load() != 1 || n != 10 {
		t.Errorf("%d walks, %d labelled", walks.Load(), n)
	}
	ended(t, goroutines)
}

// TestGroupLabelsInTurn: on a real tree too, the last label asked for is the one
// that stays, and a cancelled walk is gone with all it had opened.
func TestGroupLabelsInTurn(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	root := grow(t, on(t, "tmpfs"), seventyOne)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	g := Group{Linger: 20 * time.Millisecond, Options: Options{OnChange: func(string, string) { time.Sleep(5 * time.Millisecond) }}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var p *Pending
	if _, err := g.Tree(ctx, root, newLabel); !errors.As(err, &p) {
		t.Fatal(err)
	}
	if r, err := g.Tree(t.Context(), root, oldLabel); err != nil || !r.Complete {
		t.Errorf("%+v, %v", r, err)
	}
	if n := len(bearing(t, root, oldLabel)); n != 71 {
		t.Errorf("%d labelled", n)
	}
	ended(t, goroutines)
	if n := openFiles(t); n != files {
		t.Errorf("%d open files, %d before", n, files)
	}
}
