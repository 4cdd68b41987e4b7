// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// patience is how long a filesystem may take to answer before what does not
// need it is done first.
const patience = time.Second

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

// inDoubt stands for a mount that nobody can tell.
const inDoubt = "?"

// serverOf returns where the served filesystem is mounted that path leads to,
// "" if to none, and whether one is mounted there or beneath. It takes the
// path name by name, as the kernel would, and reads links, but none on a
// filesystem that is served. A link of procfs may lead out of the mount table.
func serverOf(mounts map[string]string, path string) (point string, any bool) {
	if !filepath.IsAbs(path) {
		wd, err := syscall.Getwd() // os.Getwd looks at the directory
		if err != nil || !filepath.IsAbs(wd) {
			return inDoubt, true
		}
		path = wd + "/" + path
	}
	at, links := "/", 0
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		at = filepath.Join(at, name) // it holds no links
		point := mountOf(mounts, at)
		if served(mounts[point]) {
			return point, true
		}
		if name == "" || name == "." || name == ".." {
			continue
		}
		to, err := os.Readlink(at)
		if err != nil {
			continue
		}
		if links++; links > 40 || filepath.IsAbs(to) && mounts[point] == "proc" {
			return inDoubt, true
		}
		if at = filepath.Dir(at); filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	for m, fstype := range mounts {
		if served(fstype) && strings.HasPrefix(m, strings.TrimSuffix(at, "/")+"/") {
			return "", true
		}
	}
	return "", false
}

// mountOf returns the mount point that dir lies beneath; "" if it is unknown.
func mountOf(mounts map[string]string, dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		if _, ok := mounts[dir]; ok {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// mayHang tells whether the work may meet a served filesystem. What a list
// names is not known yet, and in doubt it may.
func mayHang(ctx context.Context, s *settings, paths []string) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	may, err := within(ctx, func() (bool, error) {
		mounts, err := mountPoints()
		if err != nil {
			return false, nil
		}
		if s.filesFrom != "" {
			paths = append(slices.Clone(paths), "/", s.filesFrom)
		}
		for _, file := range []string{s.reference, s.forPods} {
			if file != "" {
				paths = append(slices.Clone(paths), file)
			}
		}
		return slices.ContainsFunc(slices.Concat(paths, s.exclude), func(p string) bool {
			_, may := serverOf(mounts, p)
			return may
		}), nil
	})
	return may || err != nil
}

// byServer parts paths: those that lie on no served filesystem are first, then
// those of each mount.
func byServer(ctx context.Context, paths []string) [][]string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	groups, err := within(ctx, func() ([][]string, error) {
		mounts, err := mountPoints()
		if err != nil || !slices.ContainsFunc(slices.Collect(maps.Values(mounts)), served) {
			return [][]string{paths}, err
		}
		groups, index := [][]string{nil}, map[string]int{"": 0}
		for _, p := range paths {
			point, _ := serverOf(mounts, p)
			i, ok := index[point]
			if !ok {
				i = len(groups)
				index[point], groups = i, append(groups, nil)
			}
			groups[i] = append(groups[i], p)
		}
		return groups, nil
	})
	if err != nil {
		return [][]string{paths}
	}
	return groups
}
