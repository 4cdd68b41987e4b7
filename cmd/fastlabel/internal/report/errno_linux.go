// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"errors"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// errnoName returns the name of the error number in err; "" if it has none.
func errnoName(err error) string {
	var e syscall.Errno
	if !errors.As(err, &e) {
		return ""
	}
	switch e { // of two names the kernel's own
	case syscall.EOPNOTSUPP:
		return "EOPNOTSUPP"
	case syscall.EUCLEAN:
		return "EUCLEAN"
	}
	return cmp.Or(unix.ErrnoName(e), "errno "+strconv.Itoa(int(e)))
}
