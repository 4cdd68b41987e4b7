// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strconv"
	"syscall"
)

// errnoName returns the name of the error number in err; "" if it has none.
func errnoName(err error) string {
	var e syscall.Errno
	if !errors.As(err, &e) {
		return ""
	}
	switch e {
	case syscall.EPERM:
		return "EPERM"
	case syscall.ENOENT:
		return "ENOENT"
	case syscall.EINTR:
		return "EINTR"
	case syscall.EIO:
		return "EIO"
	case syscall.ENXIO:
		return "ENXIO"
	case syscall.E2BIG:
		return "E2BIG"
	case syscall.EBADF:
		return "EBADF"
	case syscall.EAGAIN:
		return "EAGAIN"
	case syscall.ENOMEM:
		return "ENOMEM"
	case syscall.EACCES:
		return "EACCES"
	case syscall.EBUSY:
		return "EBUSY"
	case syscall.EEXIST:
		return "EEXIST"
	case syscall.EXDEV:
		return "EXDEV"
	case syscall.ENODEV:
		return "ENODEV"
	case syscall.ENOTDIR:
		return "ENOTDIR"
	case syscall.EISDIR:
		return "EISDIR"
	case syscall.EINVAL:
		return "EINVAL"
	case syscall.ENFILE:
		return "ENFILE"
	case syscall.EMFILE:
		return "EMFILE"
	case syscall.ENOSPC:
		return "ENOSPC"
	case syscall.EROFS:
		return "EROFS"
	case syscall.ERANGE:
		return "ERANGE"
	case syscall.ENAMETOOLONG:
		return "ENAMETOOLONG"
	case syscall.ENOSYS:
		return "ENOSYS"
	case syscall.ELOOP:
		return "ELOOP"
	case syscall.ENODATA:
		return "ENODATA"
	case syscall.EREMOTEIO:
		return "EREMOTEIO"
	case syscall.EOVERFLOW:
		return "EOVERFLOW"
	case syscall.EOPNOTSUPP:
		return "EOPNOTSUPP"
	case syscall.ENOTCONN:
		return "ENOTCONN"
	case syscall.ETIMEDOUT:
		return "ETIMEDOUT"
	case syscall.EHOSTDOWN:
		return "EHOSTDOWN"
	case syscall.ESTALE:
		return "ESTALE"
	case syscall.EUCLEAN:
		return "EUCLEAN"
	case syscall.EDQUOT:
		return "EDQUOT"
	case syscall.EKEYEXPIRED:
		return "EKEYEXPIRED"
	case syscall.ENOKEY:
		return "ENOKEY"
	}
	return "errno " + strconv.Itoa(int(e))
}
