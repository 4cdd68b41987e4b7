// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what must happen before it fails. A test
// asserts that something happens, and never how soon: the machine may be slow, and
// busy with other work. Where a condition comes true, none of it is waited for.
const Patience = 4 * time.Minute

// Wait waits until the condition holds, and fails the test if it does not in
// Patience. What says what is waited for.
func Wait(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%v were not enough for %s", Patience, what)
		}
	}
}

// Returns fails the test if call does not return in Patience.
func Returns(t testing.TB, what string, call func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); call() }()
	select {
	case <-done:
	case <-time.After(Patience):
		t.Fatalf("%v were not enough for %s to return", Patience, what)
	}
}
