// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestCancelSoon stops a walk of 60,000 entries near its beginning.
func TestCancelSoon(t *testing.T) {
	const dirs, files, soon = 60, 1000, 6000
	root := mkdir(t, treetest.Fresh(t, "tmpfs"), "root")
	for d := range dirs {
		dir := mkdir(t, root, fmt.Sprint(d))
		for f := range files {
			treetest.Must(t, unix.Mknod(fmt.Sprintf("%s/%d", dir, f), unix.S_IFREG|0o600, 0))
		}
	}
	const all = 1 + dirs + dirs*files
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	first, err := Tree(ctx, root, newLabel, &Options{Trace: &Trace{Change: func(string, string, string) {
		if n++; n >= soon {
			cancel()
			time.Sleep(time.Millisecond) // so that a busy machine tells the run of it
		}
	}}})
	adds(t, first)
	if !errors.Is(err, context.Canceled) || first.Complete || first.Written < soon || first.Written > all/2 {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := Tree(t.Context(), root, newLabel, &Options{Exact: true})
	adds(t, second)
	if err != nil || !second.Complete || second.Seen != all || second.Right != first.Written || second.Written != all-first.Written {
		t.Errorf("%+v, %v, after %+v", second, err, first)
	}
}

// TestLeaks: whatever way a run ends, its goroutines and open files are gone. It is
// stopped where an entry is told of, and from where none is, which labels them in
// rows and directories in visits.
func TestLeaks(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir d%d x9\nfile d1/f%03d x200\ndir m\nmount m tmpfs\nfile m/f\ndir m/d%d x20\n")
	for how, run := range labellings(t) {
		leaks(t, root, how, run)
	}
	if l := labelOf(t, filepath.Join(root, "m", "f")); l == oldLabel {
		t.Error("nothing was done")
	}
}

func leaks(t *testing.T, root, how string, run labelling) {
	for engine, m := range engines() {
		engine += ", " + how
		for stop := -1; stop < 60; stop += 6 {
			for i, rows := range []bool{false, true} {
				unclaim(t, root)
				goroutines, files := runtime.NumGoroutine(), openFiles(t)
				ctx, cancel := context.WithCancel(t.Context())
				var n atomic.Int64
				count := func() {
					if n.Add(1) == int64(stop) {
						cancel()
					}
				}
				o := Options{Workers: 8, Trace: &Trace{Change: func(string, string, string) { count() }}}
				if rows {
					o.Trace, o.Throttle = nil, func(context.Context, int) error { count(); return nil }
				}
				label := fmt.Sprintf("u:r:t:s0:c%d,c%d", stop+1, 100+i)
				r, err := run(ctx, root, label, o, as(m))
				cancel()
				adds(t, r)
				met := stop > 0 && n.Load() >= int64(stop)
				if done := err == nil && r.Complete; done == met || met && !errors.Is(err, context.Canceled) {
					t.Errorf("%s, rows %t, stop at %d: %+v, %v", engine, rows, stop, r, err)
				}
				ended(t, goroutines)
				if n := openFiles(t); n != files {
					t.Errorf("%s, rows %t, stop at %d: %d open files, %d before", engine, rows, stop, n, files)
				}
			}
		}
	}
}

// TestCancelAtCommit stops a run between the root's label and the second look
// at the root's entries. What was created in between has no label, and the root
// may not be trusted for it.
func TestCancelAtCommit(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), plain)
	late := filepath.Join(root, "late")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := Tree(ctx, root, newLabel, &Options{Workers: 1, Trace: &Trace{Change: func(path, _, _ string) {
		if path == root {
			treetest.Check(t, unix.Mknod(late, unix.S_IFREG|0o600, 0))
			cancel()
		}
	}}})
	adds(t, r)
	ok, lerr := isLabelled(root, newLabel, SkipRoot)
	if has := labelOf(t, root); has == newLabel || labelOf(t, late) == newLabel || ok || lerr != nil || r.Complete || err == nil {
		t.Errorf("the root has %s, and is trusted: %t, %v; %+v, %v", has, ok, lerr, r, err)
	}
}
