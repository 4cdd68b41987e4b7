// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"os/exec"
	"testing"
)

// Must ends the test at any error.
func Must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Check fails the test at any error, and returns: it may be called in a callback, and by other
// goroutines than the test's.
func Check(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// Output runs a program that is to succeed, and returns all that it prints.
func Output(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%.3000s", cmd, err, out)
	}
	return string(out)
}
