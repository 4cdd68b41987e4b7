// SPDX-License-Identifier: Apache-2.0

//go:build !(gc && go1.26 && !go1.28 && !race && !msan && !asan)

package sys

import "golang.org/x/sys/unix"

// Where nothing is known of the scheduler, it is told of each call.

func enter() {}

func exit() {}

func retried(trap, a1, a2, a3, a4, a5, a6 uintptr) (uintptr, Errno) {
	n, e := retry(func() (uintptr, uintptr, Errno) { return unix.Syscall6(trap, a1, a2, a3, a4, a5, a6) })
	return uintptr(n), e
}

func closed(fd uintptr) { Close(int(fd)) }
