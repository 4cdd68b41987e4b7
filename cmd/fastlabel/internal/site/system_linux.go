// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Identity is what tells one file from another, whatever it is called.
type Identity struct{ Dev, Ino uint64 }

// Identify returns the identity of a file. It is not ok for inode 0, which
// some FUSE filesystems give to every file.
func Identify(info fs.FileInfo) (id Identity, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Ino == 0 {
		return id, false
	}
	//nolint:unconvert // Dev is 32 bits wide on some architectures
	return Identity{uint64(st.Dev), st.Ino}, true
}

// ReadLabel returns the label of the file that path leads to.
func ReadLabel(path string) (string, error) {
	const most = 65536 // XATTR_SIZE_MAX
	buf := make([]byte, most)
	for {
		n, err := syscall.Getxattr(path, "security.selinux", buf)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return "", &fs.PathError{Op: "getxattr", Path: path, Err: err}
		}
		return string(bytes.TrimSuffix(buf[:n], []byte{0})), nil
	}
}

// IsBare tells that a file has no label.
func IsBare(err error) bool { return errors.Is(err, syscall.ENODATA) }

// Table is the mount table, "" where it cannot be read. As an os.File it would be given
// to Go's poller, whose thread then wakes at each reading.
func Table() (string, error) {
	const name = "/proc/self/mountinfo"
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var text bytes.Buffer
	text.Grow(8192) // a reading gives a page at most
	_, err = text.ReadFrom(f)
	return text.String(), err
}

// ReadOnly tells that nothing can be written to what path names: its mount, its
// filesystem or its subvolume is read-only.
func ReadOnly(path string) bool {
	const (
		cwd      = -0x64 // AT_FDCWD
		noFollow = 0x100 // AT_SYMLINK_NOFOLLOW
		write    = 2     // W_OK
	)
	return errors.Is(syscall.Faccessat(cwd, path, write, noFollow), syscall.EROFS)
}
