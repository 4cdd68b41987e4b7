// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// isHook reports whether the process, or thread, runs the command by that link.
func isHook(pid int, program string) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && exe == program
}

// hooksNow lists the processes that run the command by that link.
func hooksNow(t testing.TB, program string) (hooks []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range all {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && isHook(pid, program) {
			hooks = append(hooks, pid)
		}
	}
	return hooks
}

// nobody fails the test if a hook outlives its start. A thread that waits for a
// server ends when the server answers, which takes no longer than its delay.
func nobody(t testing.TB, program string) {
	t.Helper()
	treetest.Wait(t, "the hook's end", func() bool { return len(hooksNow(t, program)) == 0 })
}
