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

// inFront tells whether this job is the one that has the terminal. Of a
// terminal that controls nobody here it is.
func inFront(f *os.File) bool {
	var group int32
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return e != 0 || int(group) == syscall.Getpgrp()
}
