// SPDX-License-Identifier: Apache-2.0

package site

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
)

// Mounts is the table of mounts as the command began.
type Mounts []mountinfo.Mount

// Table reads the mount table; it is empty where that cannot be read. A line that is not
// understood is left out.
func Table() Mounts {
	all, _ := mountinfo.Read()
	return all
}

// servers are the filesystems whose calls wait for a server, or for peers: a thread may
// then hang where not even SIGKILL ends it. A disk that is gone answers, with an error.
var servers = []string{
	"9p", "afs", "autofs", "beegfs", "ceph", "cifs", "coda", "fuse", "fuseblk", "gfs2", "glusterfs", "gpfs", "lustre",
	"nfs", "nfs4", "ocfs2", "orangefs", "panfs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
}

// served reports whether what is mounted may hang. The automounts that the kernel's own
// trees have, such as that of binfmt_misc, hold no volumes.
func served(m mountinfo.Mount) bool {
	kind, _, _ := strings.Cut(m.FSType, ".") // fuse.sshfs
	return slices.Contains(servers, kind) && (kind != "autofs" || !strings.HasPrefix(m.Point, "/proc/"))
}

// MayHang reports whether there is a served filesystem. Which path leads to it is for the
// kernel to find, and that may hang.
func (all Mounts) MayHang() bool { return slices.ContainsFunc(all, served) }

// ByServer parts paths by their names: first those that name no served filesystem,
// then those of each. A link may lead to one all the same; what stalls then lets the
// next begin.
func (all Mounts) ByServer(paths []string) [][]string {
	points := map[string]bool{}
	for _, m := range all {
		if served(m) {
			points[m.Point] = true
		}
	}
	groups, index := [][]string{nil}, map[string]int{"": 0}
	wd := workingDirectory()
	for _, p := range paths {
		point := nearest(points, wd, p)
		i, ok := index[point]
		if !ok {
			i = len(groups)
			index[point], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

// nearest returns the point that path names, or the nearest above it; "" if there is none.
func nearest[V any](points map[string]V, wd, path string) string {
	if len(points) == 0 {
		return ""
	}
	for dir := absolute(wd, path); ; dir = filepath.Dir(dir) {
		if _, is := points[dir]; is {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

func absolute(wd, path string) string {
	if !filepath.IsAbs(path) {
		path = wd + "/" + path
	}
	return filepath.Clean(path)
}

// workingDirectory is "" where there is none any more, or its path is longer than the
// kernel tells. os.Getwd would look at all that lies beside it then.
func workingDirectory() string {
	wd, _ := syscall.Getwd()
	return wd
}

var kubeletVolume = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`/pods/[^/]+/volumes/([^/~]+)~([^/]+)/[^/]`)
})

// madeWithPod are the kubelet's plugins whose volumes need not be mounted.
var madeWithPod = []string{"kubernetes.io/empty-dir", "kubernetes.io/secret", "kubernetes.io/configmap", "kubernetes.io/projected", "kubernetes.io/downward-api"}

// pluginOf returns the kubelet's plugin that mounts a volume at path, "" if none does.
func pluginOf(path string) string {
	if !strings.Contains(path, "~") {
		return ""
	}
	if m := kubeletVolume().FindStringSubmatch(path); m != nil {
		if plugin := m[1] + "/" + m[2]; !slices.Contains(madeWithPod, plugin) {
			return plugin
		}
	}
	return ""
}

// Unmounted finds paths that name a directory which the kubelet keeps for a volume, where
// the volume is not mounted: a subPathExpr binds that directory without the mounts
// beneath. It returns the plugin of each. No path is looked at, which might hang.
func (all Mounts) Unmounted(paths []string) map[string]string {
	points := map[string]*mountinfo.Mount{} // of several at one place the last is on top
	for i := range all {
		points[all[i].Point] = &all[i]
	}
	plugins, wd := map[string]string{}, workingDirectory()
	for _, p := range paths {
		if on := points[nearest(points, wd, p)]; on != nil {
			if plugin := pluginOf(on.Inside(absolute(wd, p))); plugin != "" {
				plugins[p] = plugin
			}
		}
	}
	return plugins
}

// IsEmpty reports whether path is a directory on which nothing is mounted, for one that has no entries.
func (all Mounts) IsEmpty(path string) bool {
	var st, above syscall.Stat_t
	if syscall.Lstat(path, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFDIR || syscall.Stat(path+"/..", &above) != nil || st.Dev != above.Dev {
		return false
	}
	at := absolute(workingDirectory(), path) // of one filesystem, as by bind
	return !slices.ContainsFunc(all, func(m mountinfo.Mount) bool { return m.Point == at })
}

// countInodes are filesystems, by what statfs(2) calls them, that count the inodes
// in use, of which no entry but a second name of a file goes without one.
var countInodes = []uint32{
	0xef53,     // ext2, ext3, ext4
	0xf2f52010, // f2fs
	0x3153464a, // jfs
	0x01021994, // tmpfs
	0x58465342, // xfs
}

// InodesOf returns the number of inodes in use on the filesystem that has path as its top, as
// df -i shows them, if all that is walked lies on it: there are no more entries than that,
// but for further names of a file. Else it is 0.
func InodesOf(path string, xdev bool) int64 {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return 0
	}
	real = absolute(workingDirectory(), real)
	all, top := Table(), false
	for _, m := range all { // of several mounted at one place the last is on top
		if m.Point == real {
			top = m.Root == "/"
		}
	}
	if !top || !xdev && len(mountinfo.Beneath(all, real)) > 0 {
		return 0
	}
	var st syscall.Statfs_t
	if syscall.Statfs(real, &st) != nil || !slices.Contains(countInodes, uint32(st.Type)) || st.Files < st.Ffree {
		return 0
	}
	return int64(st.Files - st.Ffree)
}
