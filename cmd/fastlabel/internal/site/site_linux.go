// SPDX-License-Identifier: Apache-2.0

// Package site finds out what is at a PATH before anything is done there: which file
// it is, its label, its mount, and whether that may hang.
package site

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
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

// Part parts paths by their names: those that name no served filesystem, and the others.
// A link may lead to one all the same.
func (all Mounts) Part(paths []string) (local, remote []string) {
	points := map[string]bool{}
	for _, m := range all {
		points[m.Point] = points[m.Point] || served(m)
	}
	wd := workingDirectory()
	for _, p := range paths {
		dir := absolute(wd, p)
		for !points[dir] && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
		}
		if points[dir] {
			remote = append(remote, p)
		} else {
			local = append(local, p)
		}
	}
	return local, remote
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

// Places knows which files are refused as PATH.
type Places struct {
	kernels map[uint64]string // filesystems of the kernel's own, by device
	taken   map[file]string   // the system's directories and homes, and what holds one: why
}

type file struct{ dev, ino uint64 }

const systems = "a system directory"

// Places looks them up, but for homes on a served filesystem.
func (all Mounts) Places() Places {
	p := Places{map[uint64]string{}, map[file]string{}}
	for _, m := range all {
		if kernels(m) {
			var major, minor uint64
			if n, _ := fmt.Sscanf(m.Device, "%d:%d", &major, &minor); n == 2 {
				p.kernels[minor&0xff|major&0xfff<<8|minor&^0xff<<12|major&^0xfff<<32] = m.FSType
			}
		}
	}
	for _, dir := range mountinfo.NeverWhole {
		p.take(dir, systems)
	}
	users := homes()
	local, _ := all.Part(slices.Sorted(maps.Keys(users)))
	for _, dir := range local {
		p.take(dir, "the home of "+users[dir])
	}
	return p
}

// take adds the directory at path, also by its real path, and all above it.
func (p Places) take(path, what string) {
	real, _ := filepath.EvalSymlinks(path)
	for _, at := range slices.Compact([]string{path, real}) {
		for why := "it is " + what; filepath.IsAbs(at); at, why = filepath.Dir(at), "it holds "+what {
			if st := new(syscall.Stat_t); syscall.Lstat(at, st) == nil && p.taken[file{st.Dev, st.Ino}] == "" {
				p.taken[file{st.Dev, st.Ino}] = why
			}
			if at == "/" {
				break
			}
		}
	}
}

// kernels reports whether m is a filesystem of the kernel's own, or a tmpfs in one, as on
// /sys/fs/cgroup. An automount becomes what is mounted there, and a pod's huge pages are a volume.
func kernels(m mountinfo.Mount) bool {
	switch m.FSType {
	case "autofs", "hugetlbfs":
		return false
	case "tmpfs":
		return m.Root == "/" && (strings.HasPrefix(m.Point, "/sys/") || strings.HasPrefix(m.Point, "/proc/"))
	}
	return m.Kernels()
}

// homes returns home directories with their accounts: those with a number that useradd(8) gives to
// people, those in /home, and the caller's.
func homes() map[string]string {
	all := map[string]string{}
	passwd, _ := os.ReadFile("/etc/passwd")
	for line := range strings.Lines(string(passwd)) {
		f := strings.Split(line, ":")
		if len(f) < 7 || !filepath.IsAbs(f[5]) {
			continue
		}
		uid, _ := strconv.Atoi(f[2])
		dir := filepath.Clean(f[5])
		if uid >= 1000 && uid <= 60000 || filepath.Dir(dir) == "/home" || f[0] == os.Getenv("SUDO_USER") {
			all[dir] = f[0]
		}
	}
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		all[filepath.Clean(home)] = "the caller"
	}
	return all
}

// Why returns the reason to refuse path, of which info is, and what to do instead; "" for none.
func (p Places) Why(path string, info os.FileInfo) (why, instead string) {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&os.ModeDevice != 0:
		return "it is a device", "give the directory where it is mounted"
	case info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0:
		return "it is a FIFO or a socket", "give the directory that it lies in"
	case !ok:
		return "", ""
	case p.kernels[st.Dev] != "":
		return "it lies in a filesystem of the kernel's own (" + p.kernels[st.Dev] + ")", "give the directory where a volume is mounted"
	}
	why = p.taken[file{st.Dev, st.Ino}]
	if slices.Contains(mountinfo.NeverWhole, filepath.Clean(path)) {
		why = "it is " + systems
	}
	return why, "to restore its labels: fastlabel restorecon -R " + words.Shell(path)
}

// Off reports whether SELinux is off: this kernel has none, or no policy is loaded.
func Off() bool {
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return false
	}
	mine, _ := os.ReadFile("/proc/self/attr/current")
	return !strings.Contains(string(known), "selinuxfs") || strings.TrimRight(string(mine), "\x00\n") == "kernel"
}

// ReadOnly reports whether nothing can be written to what path names: its mount, its
// filesystem or its subvolume is read-only.
func ReadOnly(path string) bool {
	const (
		cwd      = -0x64 // AT_FDCWD
		noFollow = 0x100 // AT_SYMLINK_NOFOLLOW
		write    = 2     // W_OK
	)
	return syscall.Faccessat(cwd, path, write, noFollow) == syscall.EROFS
}

// LiesIn reports whether file is dir, or lies beneath it, by their real names; a link at the
// end of file is not followed.
func LiesIn(file, dir string) bool {
	above, name := filepath.Split(file) // not Dir: link/../x is not x
	above, err := filepath.EvalSymlinks(cmp.Or(above, "."))
	real, err2 := filepath.EvalSymlinks(dir)
	if err != nil || err2 != nil {
		return true // the engine says what is wrong
	}
	wd := workingDirectory()
	below, err := filepath.Rel(absolute(wd, real), absolute(wd, filepath.Join(above, name)))
	return err == nil && filepath.IsLocal(below)
}
