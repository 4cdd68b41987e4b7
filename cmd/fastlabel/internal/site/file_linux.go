// SPDX-License-Identifier: Apache-2.0

// Package site finds out what is at a PATH before anything is done there: which file
// it is, its label, its mount, and whether that may hang.
package site

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

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

// ReadOnly reports whether nothing can be written to what path names: its mount, its
// filesystem or its subvolume is read-only.
func ReadOnly(path string) bool {
	const (
		cwd      = -0x64 // AT_FDCWD
		noFollow = 0x100 // AT_SYMLINK_NOFOLLOW
		write    = 2     // W_OK
	)
	return errors.Is(syscall.Faccessat(cwd, path, write, noFollow), syscall.EROFS)
}

// Above returns the file, if it is there, and the directories that it lies in.
func Above(file string) (all []fs.FileInfo, err error) {
	if info, err := os.Lstat(file); err == nil {
		all = append(all, info)
	}
	dir, _ := filepath.Split(file) // not Dir: link/../x is not x
	if dir, err = filepath.EvalSymlinks(cmp.Or(dir, ".")); err == nil {
		dir, err = filepath.Abs(dir)
	}
	for err == nil {
		var info fs.FileInfo
		if info, err = os.Lstat(dir); err == nil {
			all = append(all, info)
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return all, err
}
