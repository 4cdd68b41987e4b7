// SPDX-License-Identifier: Apache-2.0

// Package caller is what stands between a run and its caller.
//
// A run has a goroutine of its own, beside which its caller waits: a call of the
// filesystem that hangs is named, and left behind if the run is to end (run_linux.go).
//
// The caller's code is called in the goroutine that waits. A panic in it ends the run as
// its context does, with a sealed root, and then goes on (code_linux.go).
package caller
