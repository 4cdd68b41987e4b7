// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Tally is what Label did. Seen = Written + Right + Skipped.
type Tally struct {
	Seen    int64 // entries met, the root included
	Written int64
	Right   int64 // had the label already, a trailing NUL or not
	Skipped int64 // on a filesystem that is read-only or has no labels
}

// Label labels root and everything beneath it, links themselves and mounts
// included, one entry after the other: the oracle. It stops the test at the
// first failure; nobody else may change the tree. It holds one descriptor a level.
func Label(t testing.TB, root, label string) Tally {
	t.Helper()
	var n Tally
	if err := n.below(root, label); err != nil {
		t.Fatalf("label %s: %v", root, err)
	}
	return n
}

// below labels path, and what is in it by its descriptor: a path may pass PATH_MAX.
func (n *Tally) below(path, label string) error {
	if err := n.one(path, label); err != nil {
		return err
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.ENOTDIR {
		return nil
	} else if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	dir := os.NewFile(uintptr(fd), path)
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, n.below(fmt.Sprintf("/proc/self/fd/%d/%s", fd, name), label))
	}
	return err
}

func (n *Tally) one(p, label string) error {
	n.Seen++
	have := make([]byte, len(label)+2)
	size, err := unix.Lgetxattr(p, Attr, have)
	if err == nil && trim(string(have[:size])) == label {
		n.Right++
		return nil
	}
	err = unix.Lsetxattr(p, Attr, []byte(label), 0)
	switch {
	case err == nil:
		n.Written++
	case errors.Is(err, unix.EROFS) || errors.Is(err, unix.ENOTSUP):
		n.Skipped++
	default:
		return &fs.PathError{Op: "lsetxattr", Path: p, Err: err}
	}
	return nil
}

// trim takes off the NUL that some programs write after a label.
func trim(label string) string { return strings.TrimSuffix(label, "\x00") }
