// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// Volume identifies a volume. A number that the kernel does not report is 0.
type Volume struct {
	dev, ino, fsid, mount uint64
	born                  int64 // ns
}

// ByAnyMount returns v without its mount.
func (v Volume) ByAnyMount() Volume {
	v.mount = 0
	return v
}

// Absolute returns an absolute path to root, whatever the working directory becomes later. It is
// not cleaned: a slash at the end leads to what a link leads to. It is an error where
// the kernel does not report the working directory, which may then have changed before
// the volume is opened. (os.Getwd looks at all that lies beside it, and may hang.)
func Absolute(root string) (string, error) {
	if root == "" || filepath.IsAbs(root) {
		return root, nil
	}
	wd, err := syscall.Getwd()
	if err != nil {
		return "", &fs.PathError{Op: "getcwd", Path: root, Err: err}
	}
	return wd + "/" + root, nil
}
