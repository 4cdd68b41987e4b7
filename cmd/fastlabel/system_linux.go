// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io/fs"
	"os"
	"syscall"
)

// identity is what tells one file from another, whatever it is called.
type identity struct{ dev, ino uint64 }

// identify returns the identity of a file. It is not ok for inode 0, which
// some FUSE filesystems give to every file.
func identify(info fs.FileInfo) (id identity, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Ino == 0 {
		return id, false
	}
	//nolint:unconvert // Dev is 32 bits wide on some architectures
	return identity{uint64(st.Dev), st.Ino}, true
}

// onlyOurs says that nobody but root and this user may write the file.
func onlyOurs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid()) && info.Mode().Perm()&0o022 == 0
}

// readLabel returns the label of the file that path leads to.
func readLabel(path string) (string, error) {
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

// mountPoints knows where something is mounted, and its type. Of several at
// one place it gives one that is served, if there is one.
func mountPoints() (map[string]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	points := map[string]string{}
	for m := range mountLines(string(text)) {
		if !served(points[m.point]) {
			points[m.point] = m.fstype
		}
	}
	return points, nil
}
