// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"io/fs"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// Vouches says whether the root has the label and vouches by it, and which it has. fd
// is Opened, or an O_PATH descriptor: ByDescriptor.
func Vouches(way sys.Way, fd int, dir bool, want string) (vouches bool, has string, op string, e sys.Errno) {
	io := xattrio.New(want)
	label, op, e := io.Read(xattrio.Target{FD: fd, Pinned: way == sys.ByDescriptor})
	if e != 0 {
		return false, "", op, e
	}
	has = label.String()
	if has != want || !dir {
		return has == want, has, "", 0
	}
	_, claimed := readClaim(way, fd)
	return !claimed, has, "", 0
}

// EntriesHave says whether each entry of a directory has the label. fd is open for
// reading.
func EntriesHave(fd int, path, want string) (bool, error) {
	fail := func(op, path string, err error) (bool, error) {
		return false, &fs.PathError{Op: op, Path: path, Err: err}
	}
	io := xattrio.New(want)
	if kind, e := sys.FSType(fd); e == 0 {
		io.Stale = sys.Stale(kind)
	}
	for d, err := range sys.Entries(fd) {
		if err != nil {
			return fail("getdents64", path, err)
		}
		at, e := sys.Openat(fd, d.Cname(), sys.OpenPath, 0)
		if xattrio.Judge(e) == xattrio.Gone {
			continue
		}
		if e != 0 {
			return fail("openat", path+"/"+string(d.Name), e)
		}
		has, op, e := io.Read(xattrio.Target{FD: at, Pinned: true})
		sys.Close(at)
		if e != 0 {
			return fail(op, path+"/"+string(d.Name), e)
		}
		if !has.Is(want) {
			return false, nil
		}
	}
	return true, nil
}
