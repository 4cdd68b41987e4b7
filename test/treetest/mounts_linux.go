// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mountsBelow lists the mount points below dir, dir itself left out, in the
// order of mounting.
func mountsBelow(dir string) ([]string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var points []string
	for line := range strings.Lines(string(info)) {
		f := strings.Fields(line)
		if len(f) < 5 {
			return nil, fmt.Errorf("mountinfo: %q", line)
		}
		p := unescape(f[4])
		if strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") && p != "/" {
			points = append(points, p)
		}
	}
	return points, nil
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

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
