// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
)

// mountsBelow lists the mount points below dir, dir itself left out, in the
// order of mounting.
func mountsBelow(dir string) ([]string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	all, err := mountinfo.Read()
	var points []string
	for _, m := range mountinfo.Beneath(all, dir) {
		if m.Point != "/" {
			points = append(points, m.Point)
		}
	}
	return points, err
}

// detachBelow detaches all mounts below dir, the last first.
func detachBelow(dir string) error {
	points, err := mountsBelow(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var errs []error
	for _, p := range slices.Backward(points) {
		if e := unix.Unmount(p, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); e != nil {
			errs = append(errs, &fs.PathError{Op: "umount2", Path: p, Err: e})
		}
	}
	return errors.Join(append(errs, err)...)
}

// remove deletes dir and all beneath it, but never through a mount: what is
// mounted there may be something else's only copy.
func remove(dir string) error {
	if err := detachBelow(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
