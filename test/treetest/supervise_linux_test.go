// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSupervise makes the third write of cat fail, then be its last.
func TestSupervise(t *testing.T) {
	run := func(decide func(Notice) Answer) Ended {
		t.Helper()
		return Supervise(t, exec.Command("sh", "-c", "echo 1; echo 2; echo 3; echo 4"), []int{unix.SYS_WRITE}, decide)
	}
	e := run(func(Notice) Answer { return Answer{} })
	if e.Calls != 4 || e.Killed || e.Code != 0 || e.Stdout != "1\n2\n3\n4\n" {
		t.Errorf("left alone: %+v", e)
	}
	third := func(a Answer) func(n Notice) Answer {
		return func(n Notice) Answer {
			if n.Same != n.Nth || n.Nr != unix.SYS_WRITE || n.Args[0] > 2 {
				t.Errorf("%+v", n)
			}
			if n.Nth == 3 {
				return a
			}
			return Answer{}
		}
	}
	e = run(third(Answer{Errno: unix.EIO}))
	if e.Code != 0 || !strings.Contains(e.Stderr, "I/O error") || strings.Contains(e.Stdout, "3") || !strings.Contains(e.Stdout, "4") {
		t.Errorf("EIO at the third: %+v", e)
	}
	e = run(third(Answer{Kill: true}))
	if e.Code != -1 || !e.Killed || e.Stdout != "1\n2\n" {
		t.Errorf("killed at the third: %+v", e)
	}
	// Denied and supervised.
	cmd := exec.Command("sh", "-c", "mkdir "+t.TempDir()+"/d || echo 1; echo 2")
	Deny(t, cmd, map[int]unix.Errno{mkdirNumber(): unix.EIO, unix.SYS_MKDIRAT: unix.EIO})
	e = Supervise(t, cmd, []int{unix.SYS_WRITE}, third(Answer{Errno: unix.EIO}))
	if e.Code != 0 || !strings.Contains(e.Stdout, "1\n") || e.Calls < 3 {
		t.Errorf("denied and supervised: %+v", e)
	}
}
