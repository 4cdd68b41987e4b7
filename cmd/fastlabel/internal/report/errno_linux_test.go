// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"
)

// TestErrnoName: a number has the kernel's own name, also where others share it.
func TestErrnoName(t *testing.T) {
	for want, err := range map[string]error{
		"EPERM":      &fs.PathError{Op: "setxattrat", Path: "a", Err: syscall.EPERM},
		"EAGAIN":     fmt.Errorf("flock: %w", syscall.EWOULDBLOCK),
		"EOPNOTSUPP": syscall.ENOTSUP,
		"EUCLEAN":    syscall.EUCLEAN,
		"ENODATA":    syscall.ENODATA,
		"ENOKEY":     syscall.ENOKEY,
		"errno 4000": syscall.Errno(4000),
		"":           io.EOF,
	} {
		if got := errnoName(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
