// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
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
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(was)

	if err := os.MkdirAll("/run/fastlabel", 0o700); err != nil {
		t.Fatal(err)
	}
	holder, err := os.OpenFile(lockName(t, root), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if err := unix.Flock(int(holder.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	before := treetest.Read(t, root)
	for _, recurse := range []bool{true, false} {
		err := chcon(t.Context(), root, newLabel, recurse, 20*time.Millisecond)
		var at *fs.PathError
		if !errors.Is(err, ErrLocked) || !errors.As(err, &at) || at.Path != root {
			t.Errorf("%v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := chcon(ctx, root, newLabel, true, 0); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrLocked) {
		t.Errorf("%v", err)
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
