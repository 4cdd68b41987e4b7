// SPDX-License-Identifier: Apache-2.0

package site

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// served tells by its type whether a filesystem's calls wait for a server, or
// for peers: a thread may then hang where not even SIGKILL ends it. A disk
// that is gone answers, with an error.
func served(fstype string) bool {
	kind, _, _ := strings.Cut(fstype, ".") // fuse.sshfs
	return slices.Contains([]string{
		"9p", "afs", "autofs", "beegfs", "ceph", "cifs", "coda", "fuse", "fuseblk", "gfs2", "glusterfs", "gpfs", "lustre",
		"nfs", "nfs4", "ocfs2", "orangefs", "panfs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
	}, kind)
}

// servedMount tells whether what is mounted at point may hang. The automounts that
// the kernel's own trees have, such as that of binfmt_misc, hold no volumes.
func servedMount(point, fstype string) bool {
	return served(fstype) && (fstype != "autofs" || !strings.HasPrefix(point, "/proc/"))
}

// MayHang tells whether the work may meet a served filesystem: whether there is
// one. Which path leads to it is for the kernel to find, and that may hang.
func MayHang(table string) bool {
	for point, fstype := range mountPoints(table) {
		if servedMount(point, fstype) {
			return true
		}
	}
	return false
}

// ByServer parts paths by their names: first those that name no served filesystem,
// then those of each. A link may lead to one all the same; what stalls then lets the
// next begin.
func ByServer(table string, paths []string) [][]string {
	groups, index := [][]string{nil}, map[string]int{"": 0}
	mounts, wd := mountPoints(table), workingDirectory()
	for _, p := range paths {
		point := serverOf(mounts, wd, p)
		i, ok := index[point]
		if !ok {
			i = len(groups)
			index[point], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

// mountPoints knows where something is mounted, and its type. Of several at
// one place it gives one that is served, if there is one.
func mountPoints(table string) map[string]string {
	points := map[string]string{}
	for _, m := range mounts(table) {
		if !servedMount(m.Point, points[m.Point]) {
			points[m.Point] = m.FSType
		}
	}
	return points
}

// serverOf returns where the served filesystem is mounted that path names, "" if
// none.
func serverOf(mounts map[string]string, wd, path string) string {
	if !filepath.IsAbs(path) {
		path = wd + "/" + path
	}
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if fstype, mounted := mounts[dir]; mounted && servedMount(dir, fstype) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// workingDirectory is "" where there is none any more, or its path is longer than the
// kernel tells. os.Getwd would look at all that lies beside it then.
func workingDirectory() string {
	wd, err := syscall.Getwd()
	if err != nil {
		return ""
	}
	return wd
}
