// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"os"
	"path/filepath"
)

// Above has what the file lies in, and itself if it is there.
func Above(file string) (map[Identity]bool, error) {
	dirs, err := upwards(dirOf(file))
	if err != nil {
		return nil, err
	}
	all := map[Identity]bool{}
	for _, id := range dirs {
		all[id] = true
	}
	if info, err := os.Lstat(file); err == nil {
		if id, ok := Identify(info); ok {
			all[id] = true
		}
	}
	return all, nil
}

// dirOf is what the kernel resolves for file but its last name: link/../x is not x.
func dirOf(file string) string {
	dir, _ := filepath.Split(file)
	return cmp.Or(dir, ".")
}

// SameName tells whether two names are one, whatever leads to their directory.
func SameName(a, b string) bool {
	if filepath.Base(a) != filepath.Base(b) {
		return false
	}
	one, err := upwards(dirOf(a))
	other, err2 := upwards(dirOf(b))
	return err == nil && err2 == nil && one[0] == other[0]
}
