// SPDX-License-Identifier: Apache-2.0

package site

import (
	"path/filepath"
	"slices"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
)

// countInodes are filesystems, by what statfs(2) calls them, that count the inodes
// in use, of which no entry but a second name of a file goes without one.
var countInodes = []uint32{
	0xef53,     // ext2, ext3, ext4
	0xf2f52010, // f2fs
	0x3153464a, // jfs
	0x01021994, // tmpfs
	0x58465342, // xfs
}

// InodesOf is how many inodes are in use on the filesystem that has path as its top, as
// df -i shows them, if all that is walked lies on it: there are no more entries than that,
// but for further names of a file. Else it is 0.
func InodesOf(path string, xdev bool) int64 {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return 0
	}
	if !filepath.IsAbs(real) {
		real = filepath.Join(workingDirectory(), real)
	}
	table, err := Table()
	if err != nil {
		return 0
	}
	all := mounts(table)
	if !isTop(all, real) || !xdev && len(mountinfo.Beneath(all, real)) > 0 {
		return 0
	}
	var st syscall.Statfs_t
	if syscall.Statfs(real, &st) != nil || !slices.Contains(countInodes, uint32(st.Type)) || st.Files < st.Ffree {
		return 0
	}
	return int64(st.Files - st.Ffree)
}

// isTop reports whether a whole filesystem is mounted at path.
func isTop(all []mountinfo.Mount, path string) (is bool) {
	for _, m := range all { // of several mounted at one place the last is on top
		if m.Point == path {
			is = m.Root == "/"
		}
	}
	return is
}
