// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"errors"
	"io/fs"
)

type identity struct{ dev, ino uint64 }

func identify(fs.FileInfo) (identity, bool) { return identity{}, false }

func upwards(path string) ([]identity, error) {
	return nil, &fs.PathError{Op: "openat", Path: path, Err: errors.ErrUnsupported}
}

func onlyOurs(fs.FileInfo) bool { return false }

func readLabel(path string) (string, error) {
	return "", &fs.PathError{Op: "getxattr", Path: path, Err: errors.ErrUnsupported}
}

func isBare(error) bool { return false }

func mountPoints() (map[string]string, error) { return nil, errors.ErrUnsupported }
