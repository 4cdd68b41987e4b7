// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"os"
	"path/filepath"
)

// Above has what the file lies in, and itself if it is there.
func Above(file string) (map[Identity]bool, error) {
	dir, _ := filepath.Split(file) // not Dir: link/../x is not x
	dir, err := filepath.EvalSymlinks(cmp.Or(dir, "."))
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, err
	}
	all := map[Identity]bool{}
	note := func(path string) error {
		info, err := os.Lstat(path)
		if err == nil {
			if id, ok := Identify(info); ok {
				all[id] = true
			}
		}
		return err
	}
	_ = note(file) // it need not be there
	for err == nil {
		if err = note(dir); dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return all, err
}
