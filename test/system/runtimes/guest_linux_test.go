// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Where things are in the container.
const (
	guestPath    = "/bin/guest"
	guestVolume  = "/volume"
	guestWitness = "/witness" // a directory of the host's: who ran writes there
)

// guestArgs is the process of a container: it writes the witness, reads the
// label of every entry of the volume, and exits with 0 only if it finds as many
// entries as there are, and as many of them without the label as expected.
func guestArgs(label string, entries, wrong int) []string {
	return []string{guestPath, "role-guest", label, strconv.Itoa(entries), strconv.Itoa(wrong)}
}

// idleArgs is a process that looks at nothing.
func idleArgs() []string { return []string{guestPath, "role-guest"} }

func guest(args []string) error {
	if err := os.WriteFile(filepath.Join(guestWitness, "ran"), nil, 0o644); err != nil {
		return err
	}
	if len(args) == 0 {
		return nil
	}
	if len(args) != 3 {
		return errors.New("role-guest LABEL ENTRIES WRONG")
	}
	var entries, wrong int
	var first string
	buf := make([]byte, 256)
	err := filepath.WalkDir(guestVolume, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		n, err := unix.Lgetxattr(path, "security.selinux", buf)
		if err != nil && err != unix.ENODATA {
			return &fs.PathError{Op: "lgetxattr", Path: path, Err: err}
		}
		entries++
		if got := string(buf[:max(n, 0)]); got != args[0] {
			if wrong++; wrong == 1 {
				first = path + " " + got
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if fmt.Sprint(entries, wrong) != args[1]+" "+args[2] {
		return fmt.Errorf("%d entries, %d wrong (%s), not %s and %s", entries, wrong, first, args[1], args[2])
	}
	return nil
}
