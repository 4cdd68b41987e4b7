// SPDX-License-Identifier: Apache-2.0

//go:build gc && go1.26 && !go1.28 && !race && !msan && !asan && !fastlabel_slow

package sys

import (
	"syscall"
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"
)

// Fast reports that the scheduler is informed once a row.
const Fast = true

// enter and exit inform the scheduler that this thread is about to make system
// calls, and has made them, as every call of package syscall does for itself.
// The runtime keeps the two names for such use (go.dev/issue/67401). An unknown
// version of Go takes rowslow_linux.go, and so do -tags fastlabel_slow, the race
// detector and the other sanitizers, whose calls grow the stack. To add a version,
// read its entersyscall and exitsyscall, and run the tests of this package with it.
//
//go:linkname enter runtime.entersyscall
func enter()

//go:linkname exit runtime.exitsyscall
func exit()

// retried makes a call of a row or a visit, again if a signal came between. Without
// optimization (-gcflags='all=-N -l') what lies between enter and exit may nest no
// deeper than this; and unix.RawSyscall6 of x/sys v0.30.0 grows the stack on ppc64.
//
//go:nosplit
func retried(trap, a1, a2, a3, a4, a5, a6 uintptr) (uintptr, Errno) {
	for {
		n, _, e := syscall.RawSyscall6(trap, a1, a2, a3, a4, a5, a6)
		if e != syscall.EINTR {
			return n, e
		}
	}
}

// closed closes a descriptor, which is gone whatever the answer.
//
//go:nosplit
func closed(fd uintptr) { _, _, _ = syscall.RawSyscall6(unix.SYS_CLOSE, fd, 0, 0, 0, 0, 0) }
