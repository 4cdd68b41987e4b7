// SPDX-License-Identifier: Apache-2.0

//go:build !(gc && go1.26 && !go1.28 && !race && !msan && !asan && !fastlabel_slow)

package sys

import "golang.org/x/sys/unix"

// Fast reports that the scheduler is informed once a row, not of each call as here.
const Fast = false

func enter() {}

func exit() {}

func retried(trap, a1, a2, a3, a4, a5, a6 uintptr) (uintptr, Errno) {
	n, e := retry(func() (uintptr, uintptr, Errno) { return unix.Syscall6(trap, a1, a2, a3, a4, a5, a6) })
	return uintptr(n), e
}

func closed(fd uintptr) { Close(int(fd)) }
