// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// noErrno is the exit code of a role that failed in another way.
const noErrno = 200

func play(role string, args []string) int {
	roles := map[string]func([]string) error{
		"role-read": roleRead, "role-create": roleCreate, "role-write": roleWrite, "role-guest": roleGuest,
	}
	err := error(errors.New("no such role"))
	if do := roles[role]; do != nil {
		err = do(args)
	}
	var errno syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno):
		return int(errno)
	}
	return noErrno
}

// roleRead reads a file or a directory to its end.
func roleRead(args []string) error {
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		_, err = f.ReadDir(-1)
	} else {
		_, err = io.Copy(io.Discard, f)
	}
	return err
}

// roleCreate makes a directory and a file in it.
func roleCreate(args []string) error {
	if err := os.Mkdir(args[0], 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(args[0], "file"), []byte("x"), 0o644)
}

// roleWrite makes files and directories all over a tree, and removes some,
// until the file args[1] is gone. It skips what it is refused: that is
// the label's work. It renames nothing, for what is moved during a run is nobody's
// promise.
func roleWrite(args []string) error {
	root, until, name := args[0], args[1], args[2]
	made := 0
	for round := 0; ; round++ {
		if _, err := os.Lstat(until); err != nil {
			break
		}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() || strings.HasPrefix(d.Name(), name) {
				return nil
			}
			file := filepath.Join(path, fmt.Sprintf("%s-%d", name, round%8))
			if err := os.WriteFile(file, []byte("x"), 0o644); err == nil {
				made++
			}
			_ = os.Mkdir(file+".d", 0o755)
			_ = os.WriteFile(file+".d/f", nil, 0o644)
			if round%3 == 0 {
				_ = os.RemoveAll(file)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if made == 0 {
		return syscall.EACCES
	}
	return nil
}
