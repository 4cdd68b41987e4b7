// SPDX-License-Identifier: Apache-2.0

// Package caller is what stands between a run and its caller.
//
// A run has a goroutine of its own, beside which its caller waits: a call of the
// filesystem that hangs is named, and left behind if the run is to end (run_linux.go).
//
// The caller's code runs in goroutines that hold nothing of the run: no descriptor,
// no lock and no worker. So it may panic, or end its goroutine: the run is stopped
// as by its context, the root is sealed, and the same happens to the goroutine that
// called Tree. And it may block: a run that was stopped waits for it as long as for
// a call of the filesystem, and then ends without it, with all that it has opened
// (code_linux.go).
package caller

// Code begins what a call is named that is one of the caller's code.
const Code = "the caller's "
