// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// The runtimes' timeouts, in seconds. On a machine with nothing else to do half
// a second would serve.
const (
	killAfter = 2
	allowed   = 4 // of which the hook uses half
)

// served is a slow volume: 100 ms a label, for 800 files in two directories.
func served(t testing.TB) *server {
	t.Helper()
	s := serve(t, plant(t, onDisk(t), slow))
	s.slow(100 * time.Millisecond)
	return s
}

// with is a container that asks for the labels of the served volume.
func (s *server) with(t testing.TB, c cell, hooks ...hook) *container {
	t.Helper()
	v := s.volume
	v.root = s.dir
	return c.with(t, v, hooks...)
}

// TestKilledByRuntime has the runtime's timeout come before the hook has ended:
// it kills the hook. The volume is sealed then, and a start after that does the
// rest. That the walk was cut short in its midst is the control, and shows that no
// start waited for a process that the hook left behind, which sets all labels.
func TestKilledByRuntime(t *testing.T) {
	each(t, func(t *testing.T, c cell) {
		s := served(t)
		lines := filepath.Join(t.TempDir(), "lines")
		x := s.with(t, c, noted(s.hook, lines, killAfter))
		r := x.start(t)
		t.Logf("%s says after %v: %s", c.engine, r.took.Round(10*time.Millisecond), strings.TrimSpace(r.said))
		nobody(t, s.hook)
		r.stopped(t, "killed")
		if text, err := os.ReadFile(lines); err != nil || strings.Contains(string(text), "incomplete") {
			t.Errorf("it was not killed: %s, %v", text, err)
		}
		s.sealed(t)
		s.partly(t)
		s.retried(t, x)
	})
}

// TestOwnDeadline has the hook stop by itself, before the runtime's timeout
// that it found in config.json.
func TestOwnDeadline(t *testing.T) {
	each(t, func(t *testing.T, c cell) {
		s := served(t)
		x := s.with(t, c, ours(s.hook, allowed)).withLines()
		r := x.start(t)
		nobody(t, s.hook)
		r.stopped(t, "too slow")
		x.hasLines(t, r, ": "+guestVolume+": incomplete (deadline of 2s reached), ", "; the next try resumes")
		s.sealed(t)
		s.partly(t)
		s.retried(t, x)
	})
}

// retried starts the container again, on a server that is fast: it does the
// rest.
func (s *server) retried(t *testing.T, x *container) {
	t.Helper()
	s.slow(0)
	x.hooks[0].Timeout = 0
	x.start(t).succeeds(t, "the next try")
	s.has(t, newLabel)
}

// nobody fails the test if a hook, by that link to the command, outlives its start. A
// thread that waits for a server ends when the server answers, which takes no longer than
// its delay.
func nobody(t testing.TB, program string) {
	t.Helper()
	treetest.Wait(t, "the hook's end", func() bool {
		all, err := filepath.Glob("/proc/[0-9]*/exe")
		treetest.Must(t, err)
		return !slices.ContainsFunc(all, func(exe string) bool {
			to, err := os.Readlink(exe)
			return err == nil && to == program
		})
	})
}
