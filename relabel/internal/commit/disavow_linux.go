// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// By rules the root keeps its label, or gets that of its rule, whatever the entries beneath
// it get. So that nobody who asks us takes this label for a commit, there is a claim beside
// it that wants none. It is left before the first write, and stays until a run commits the
// root.

// Disavow makes the directory that fd names vouch for nothing, whatever label it has, before
// anything is written later. o is its filesystem's. first says that no claim was there before.
func Disavow(fd int, o Order) (first bool, e sys.Errno) {
	found, is := readClaim(sys.Opened, fd)
	if is && found.want == "" {
		return false, 0
	}
	k := claim{former: found.former}
	io := xattrio.New("")
	if has, _, e := io.Read(xattrio.Target{FD: fd}); e == 0 {
		k.spare(found.want, has.String())
	}
	switch e := sys.NewAttr(ClaimName, k.String()).Set(sys.Opened, fd, nil); e {
	case 0:
		if e = o.one().on(fd, func(string) {}); e == syscall.EINVAL { // cgroups and others of the kernel's own: there is no disk
			e = 0
		}
		return !is, e
	case syscall.EPERM, syscall.ENOTSUP, syscall.EROFS: // as removeClaim
		return false, 0
	default:
		return false, e
	}
}

// Disavowed says whether the directory that fd names has the claim that Disavow leaves. fd
// may be an O_PATH descriptor.
func Disavowed(fd int) bool {
	k, is := readClaim(sys.ByDescriptor, fd)
	return is && k.want == ""
}

// Avow removes the claim of a Disavow that found none before it, if nothing was written
// since. fd may be an O_PATH descriptor.
func Avow(fd int) sys.Errno { return removeClaim(sys.ByDescriptor, fd) }

func removeClaim(way sys.Way, fd int) sys.Errno {
	switch e := sys.Removexattr(way, fd, ClaimName); e {
	case syscall.ENODATA, syscall.EPERM, syscall.ENOTSUP: // it was not there, or never could be
		return 0
	case syscall.EROFS: // the kernel says so whether it is there or not, and this run changes nothing
		return 0
	default:
		return e
	}
}
