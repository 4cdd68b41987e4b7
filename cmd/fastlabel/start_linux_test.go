// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestStart: the table of mounts, which is long on a node, is read once for all that the
// command asks of it, and a command that is not called has no flags.
func TestStart(t *testing.T) {
	treetest.Need(t, "root", "plain", "strace")
	calls := treetest.Trace(t, treetest.Command(t), "-q", t.TempDir(), t.TempDir())
	began, read := 1, 0
	for _, c := range calls {
		if p, _ := c.Path(); c.OK() && p == "/proc/self/mountinfo" {
			read++
		} else if c.OK() && c.Name == "execve" && c.PID != calls[0].PID { // the work is done apart
			began++
		}
	}
	if read < began || read > 3*began { // by Go's runtime too, and by the library, which only polls it
		t.Errorf("%d processes opened the table of mounts %d times", began, read)
	}

	made := func(args []string) float64 {
		return testing.AllocsPerRun(10, func() { commandTree(new(settings), args, nil) })
	}
	if called, all := made([]string{"-q", "/srv/v"}), made(nil); called > all/3 {
		t.Errorf("%.0f allocations for the flags of one command, %.0f for those of all", called, all)
	}
}
