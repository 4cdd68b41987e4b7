// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// parentsTerminal opens what a part's parent has as standard error.
func parentsTerminal() (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("/proc/%d/fd/2", os.Getppid()), os.O_RDONLY|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
}

// inFront tells whether this job is in the foreground of the terminal. It is where the
// terminal is not the controlling one.
func inFront(f *os.File) bool {
	var group int32
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return e != 0 || int(group) == syscall.Getpgrp()
}
