// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// isHook reports whether the process, or thread, runs the command by that link.
func isHook(pid int, program string) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && exe == program
}

// hooksNow lists the processes that run the command by that link.
func hooksNow(t testing.TB, program string) []int {
	t.Helper()
	var hooks []int
	for pid := range parents(t) {
		if isHook(pid, program) {
			hooks = append(hooks, pid)
		}
	}
	return hooks
}

// parents gives every process's parent.
func parents(t testing.TB) map[int]int {
	t.Helper()
	all := map[int]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue // "self"
		}
		// The name may hold blanks and brackets; after it stand the state and
		// the parent.
		rest := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+1:])
		if parent, err := strconv.Atoi(rest[1]); err == nil {
			all[pid] = parent
		}
	}
	return all
}

// childless fails the test if the process has a child; that its parent has one
// shows that a child would be seen.
func childless(t testing.TB, pid int) {
	t.Helper()
	all := parents(t)
	if all[pid] < 1 {
		t.Errorf("control: the parent of %d is %d", pid, all[pid])
	}
	for child, parent := range all {
		if parent == pid {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child))
			t.Errorf("the hook has a child: %s", name)
		}
	}
}

// await waits until a hook runs, and gives its process; 0 if none comes.
func await(t testing.TB, program string) int {
	t.Helper()
	for end := time.Now().Add(patience / 2); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if hooks := hooksNow(t, program); len(hooks) == 1 {
			return hooks[0]
		}
	}
	t.Error("no hook runs")
	return 0
}

// nobody fails the test if a hook outlives its start. A thread that waits for a
// server ends when the server answers, which takes no longer than its delay.
func nobody(t testing.TB, program string) {
	t.Helper()
	treetest.Wait(t, "the hook's end", func() bool { return len(hooksNow(t, program)) == 0 })
}
