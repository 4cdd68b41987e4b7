// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
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
