// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestDropinWaits: while another relabel has the volume's lock, a drop-in gives up when its
// patience or its context ends; it has changed nothing, and logs nothing. The next request joins
// what an ended one has left under way, and Stop ends that: then nothing is open.
func TestDropinWaits(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), plain)
	var log bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(was)

	release := holdLock(t, root)
	before := treetest.Read(t, root)
	for _, recurse := range []bool{true, false} {
		err := chconHere(context.Background(), root, newLabel, recurse, 20*time.Millisecond)
		var at *fs.PathError
		if !errors.Is(err, ErrLocked) || !errors.As(err, &at) || at.Path != root {
			t.Errorf("%v", err)
		}
	}
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	leaves(t, root)
	leaves(t, root) // joins what the first has left
	if all := joined.Pending(); len(all) != 1 || all[0].Root != root {
		t.Errorf("%+v", all)
	}
	if err := Stop(t.Context(), root); err != nil || len(joined.Pending()) > 0 {
		t.Errorf("%v: %+v", err, joined.Pending())
	}
	nothingLeft(t, goroutines, files)
	if d := treetest.Diff(before, treetest.Read(t, root)); len(d) > 0 {
		t.Error(d)
	}
	release()
	treetest.Check(t, change(t.Context(), root, newLabel, true))
	if n := len(bearing(t, root, newLabel)); n != len(before) || log.Len() > 0 {
		t.Errorf("%d labelled of %d; logged %q", n, len(before), &log)
	}
}

// TestDropinsTogether: a drop-in that waited for one of the same label has nothing left to walk;
// one of another label walks, and so does one after a run that failed, also where the root was
// right before and still is.
func TestDropinsTogether(t *testing.T) {
	for name, c := range map[string]struct {
		root, first string
		fails       bool
		seen        int64
	}{
		"the same":      {oldLabel, newLabel, false, 1},
		"another label": {oldLabel, "system_u:object_r:container_file_t:s0:c8,c9", false, 46},
		"failed":        {oldLabel, newLabel, true, 46},
		"right, failed": {newLabel, newLabel, true, 46},
	} {
		t.Run(name, func(t *testing.T) {
			root := grow(t, on(t, "tmpfs"), plain)
			treetest.Set(t, root, ".", c.root)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			began, waits := make(chan struct{}), make(chan struct{})
			run := func(ctx context.Context, label string, trace *Trace) (Report, error) {
				return tree(ctx, root, label, Options{Trace: trace, LockTimeout: treetest.Patience}, inner{joins: true})
			}
			hold := sync.OnceFunc(func() {
				close(began)
				<-waits
				if c.fails {
					cancel()
				}
			})
			var first sync.WaitGroup
			first.Go(func() {
				_, err := run(ctx, c.first, &Trace{Change: func(string, string, string) { hold() }})
				if (err != nil) != c.fails {
					t.Error(err)
				}
			})
			<-began
			r, err := run(context.WithoutCancel(t.Context()), newLabel, &Trace{Wait: func() { close(waits) }})
			first.Wait()
			if err != nil || !r.Complete || r.Seen != c.seen || labelOf(t, root) != newLabel {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// leaves has a request for root end while the lock is waited for: the work goes on.
func leaves(t *testing.T, root string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() { answer <- change(ctx, root, newLabel, true) }()
	callers(t, &joined, 1)
	treetest.Wait(t, "the lock is waited for", func() bool { return joined.Pending()[0].Waits != "" })
	cancel()
	var pending *PendingError
	if err := <-answer; !errors.Is(err, context.Canceled) || errors.Is(err, ErrLocked) || !errors.As(err, &pending) || pending.Within <= 0 {
		t.Errorf("%v", err)
	}
}
