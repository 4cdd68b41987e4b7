// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package main

import (
	"runtime/debug"
	"syscall"
	"unsafe"
)

// exitHandler is the address of a signal handler that exits with exitFailed.
func exitHandler() uintptr

// crashAsFailure has a crash of Go's runtime, such as the fatal error at its limit of
// threads, exit with 1: the runtime's own code is 2, which says here that nothing was
// begun. With the traceback "crash" the runtime ends by SIGABRT, and that is ours.
func crashAsFailure() {
	const onStack, restorer = 0x08000000, 0x04000000 // SA_ONSTACK, SA_RESTORER (signal.h)
	action := struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}{exitHandler(), onStack | restorer, exitHandler(), 0}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGABRT), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	if errno == 0 {
		debug.SetTraceback("crash")
	}
}
