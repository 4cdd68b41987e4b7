// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package site

import (
	"errors"
	"io/fs"
)

type Identity struct{ Dev, Ino uint64 }

func Identify(fs.FileInfo) (Identity, bool) { return Identity{}, false }

func ReadLabel(path string) (string, error) {
	return "", &fs.PathError{Op: "getxattr", Path: path, Err: errors.ErrUnsupported}
}

func IsBare(error) bool { return false }

func Table() (string, error) { return "", errors.ErrUnsupported }

func ReadOnly(string) bool { return false }

func InodesOf(string, bool) int64 { return 0 }
