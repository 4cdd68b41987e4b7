// SPDX-License-Identifier: Apache-2.0

package undofile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// datasync puts what was written to f on disk.
func datasync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err == nil {
			return nil
		}
		if err != syscall.EINTR {
			return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
	}
}

// syncParent puts the name path on disk.
func syncParent(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close() // only synced
	return dir.Sync()
}
