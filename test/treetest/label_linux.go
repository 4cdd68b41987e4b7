// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
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

// segment is a directory to walk from, reached by the descriptor of its
// parent, so that the paths in the walk are short again.
type segment struct {
	root   string
	parent int // -1 for the first
}

// longPath is where a walk is cut. A name has at most 255 bytes, so what is
// made of a path of this length stays far below PATH_MAX.
const longPath = 2048

// Label labels root and everything beneath it, links themselves and mounts
// included, one entry after the other: the oracle. It stops the test at the
// first failure; nobody else may change the tree.
//
// filepath.WalkDir walks by whole paths. Where one grows long, the walk ends there
// and a new one begins, below the descriptor of the directory that holds the
// rest. Each such place keeps a descriptor open until its turn.
func Label(t testing.TB, root, label string) Tally {
	t.Helper()
	var n Tally
	todo := []segment{{root, -1}}
	defer func() {
		for _, s := range todo {
			closeParent(s)
		}
	}()
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		more, err := labelSegment(s, label, &n)
		todo = append(todo[:len(todo)-1], more...)
		closeParent(s)
		if err != nil {
			t.Fatalf("label %s: %v", root, err)
		}
	}
	return n
}

func closeParent(s segment) {
	if s.parent >= 0 {
		_ = unix.Close(s.parent) // an O_PATH descriptor has nothing to lose
	}
}

// labelSegment labels what is near and returns what is too far below.
func labelSegment(s segment, label string, n *Tally) (far []segment, err error) {
	start := filepath.Clean(s.root)
	err = filepath.WalkDir(start, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		again := s.parent >= 0 && p == start
		if !again {
			if err := labelOne(p, label, n); err != nil {
				return err
			}
		}
		if p == start || !d.IsDir() || len(p) < longPath {
			return nil
		}
		fd, err := unix.Open(filepath.Dir(p), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &fs.PathError{Op: "open", Path: filepath.Dir(p), Err: err}
		}
		far = append(far, segment{fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(p)), fd})
		return fs.SkipDir
	})
	return far, err
}

func labelOne(p, label string, n *Tally) error {
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
