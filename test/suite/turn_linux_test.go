// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// The passes run at once: here the first waits for the end of the second, which waits
// for the first to begin. What they print is in order all the same.
func TestAtOnce(t *testing.T) {
	module(t, "meets")
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FIFO", fifo)
	code, said := runs([]string{"-v"}, "first X=first -timeout=4m ./meets", "second X=second -timeout=4m ./meets")
	const pass = `: go test .*\n=== RUN   TestMeets\n(.*\n)?.*x_test.go.*\n--- PASS: TestMeets .*\n(PASS\n)?ok .*\n`
	if want := regexp.MustCompile("^== first" + pass + "== second" + pass + "2 passed, 0 failed, 0 skipped\n$"); code != 0 || !want.MatchString(said) {
		t.Errorf("exit %d: %s", code, said)
	}
}
