// SPDX-License-Identifier: Apache-2.0

package site

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// oPath is O_PATH, which package syscall lacks: it mounts nothing and asks no
// device.
const oPath = 0x200000

// Look finds out what can be said of path without a look beneath it.
func Look(path string) (Site, error) {
	v := Site{Path: path}
	fd, err := openPath(path)
	if err != nil {
		return v, err
	}
	defer func() { _ = syscall.Close(fd) }()
	proc := "/proc/self/fd/" + strconv.Itoa(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return v, &fs.PathError{Op: "fstat", Path: path, Err: err}
	}
	v.Directory = st.Mode&syscall.S_IFMT == syscall.S_IFDIR
	if v.Real, err = os.Readlink(proc); err != nil {
		return v, err
	}
	table, err := Table()
	if err != nil {
		return v, err
	}
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return v, err
	}
	v.place(table, mountID(string(info)))
	v.Label, err = ReadLabel(proc)
	switch {
	case err == nil:
		v.HasLabel, v.Mount.Unknown = true, false
	case errors.Is(err, errors.ErrUnsupported):
		v.Mount.Unknown = false
		if v.Mount.NoLabels == "" {
			v.Mount.NoLabels = "the filesystem (" + v.Mount.FSType + ") keeps none"
		}
	case errors.Is(err, syscall.ENODATA):
		v.Mount.Unknown = false
	default:
		var at *fs.PathError
		if errors.As(err, &at) {
			at.Path = path
		}
		return v, err
	}
	return v, nil
}

// openPath opens what path names; a link at its end is itself, unless a slash
// follows.
func openPath(path string) (int, error) {
	for {
		fd, err := syscall.Open(path, oPath|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return fd, nil
	}
}

// mountID finds the mount in the text of a file in fdinfo.
func mountID(text string) uint64 {
	_, rest, _ := strings.Cut(text, "\nmnt_id:\t")
	line, _, _ := strings.Cut(rest, "\n")
	id, _ := strconv.ParseUint(line, 10, 64) // no mount has 0
	return id
}

// ReadOnly tells that nothing can be written to what path names: its mount, its
// filesystem or its subvolume is read-only.
func ReadOnly(path string) bool {
	const (
		cwd      = -0x64 // AT_FDCWD
		noFollow = 0x100 // AT_SYMLINK_NOFOLLOW
		write    = 2     // W_OK
	)
	return errors.Is(syscall.Faccessat(cwd, path, write, noFollow), syscall.EROFS)
}
