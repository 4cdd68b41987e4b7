// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestDropinWaits: while another relabel has the volume's lock, a drop-in says so
// in the log, gives up when its patience or its context ends, and has changed nothing.
func TestDropinWaits(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), plain)
	var log bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(was)

	holder := holdLock(t, root)
	before := treetest.Read(t, root)
	for _, recurse := range []bool{true, false} {
		err := chcon(context.WithoutCancel(t.Context()), root, newLabel, recurse, 20*time.Millisecond)
		var at *fs.PathError
		if !errors.Is(err, ErrLocked) || !errors.As(err, &at) || at.Path != root {
			t.Errorf("%v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var pending *PendingError // the work goes on
	if err := chcon(ctx, root, newLabel, true, 0); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrLocked) || !errors.As(err, &pending) {
		t.Errorf("%v", err)
	}
	if err := Stop(t.Context(), root); err != nil {
		t.Error(err)
	}
	if d := treetest.Diff(before, treetest.Read(t, root)); len(d) > 0 {
		t.Error(d)
	}
	if n := strings.Count(log.String(), "waits for another relabel of the volume"); n != 3 {
		t.Errorf("told %d times:\n%s", n, &log)
	}
	log.Reset()
	if err := errors.Join(unix.Flock(int(holder.Fd()), unix.LOCK_UN), chcon(t.Context(), root, newLabel, true, 0)); err != nil {
		t.Error(err)
	}
	if n := len(bearing(t, root, newLabel)); n != len(before) || log.Len() > 0 {
		t.Errorf("%d labelled of %d; logged %q", n, len(before), &log)
	}
}

// TestDropinJoins: a request that ends leaves its work under way, one that asks again joins
// it, and Stop ends it: then nothing is open.
func TestDropinJoins(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), plain)
	holder := holdLock(t, root)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	leave := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		var pending *PendingError
		if err := chcon(ctx, root, newLabel, true, 0); !errors.As(err, &pending) || pending.Within <= 0 {
			t.Errorf("%v", err)
		}
	}
	leave()
	leave()
	if all := joined.Work(); len(all) != 1 || all[0].Root != root {
		t.Errorf("%+v", all)
	}
	if err := Stop(t.Context(), root); err != nil || len(joined.Work()) > 0 {
		t.Errorf("%v: %+v", err, joined.Work())
	}
	nothingLeft(t, goroutines, files)
	leave()
	if err := unix.Flock(int(holder.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := chcon(t.Context(), root, newLabel, true, 0); err != nil || len(bearing(t, root, newLabel)) != 46 {
		t.Errorf("%v", err)
	}
	nothingLeft(t, goroutines, files)
}

// holdLock takes the lock of root, as another process does.
func holdLock(t *testing.T, root string) *os.File {
	t.Helper()
	if err := os.MkdirAll("/run/fastlabel", 0o700); err != nil {
		t.Fatal(err)
	}
	holder, err := os.OpenFile(lockName(t, root), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { holder.Close() })
	if err := unix.Flock(int(holder.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return holder
}
