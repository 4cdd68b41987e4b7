// SPDX-License-Identifier: Apache-2.0

//go:build gc && go1.26 && !go1.28 && !race

package sys

import (
	"syscall"
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"
)

// enter and exit tell the scheduler that this thread is about to make system
// calls, and has made them: what every call of package syscall does for itself.
// The runtime keeps the two names for such use (go.dev/issue/67401). A version
// of Go that nobody has looked at takes rowslow_linux.go, and so does the race
// detector, whose calls grow the stack.
//
//go:linkname enter runtime.entersyscall
func enter()

//go:linkname exit runtime.exitsyscall
func exit()

//go:nosplit
//go:norace
func rawSyscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err syscall.Errno) {
	return unix.RawSyscall6(trap, a1, a2, a3, a4, a5, a6)
}
