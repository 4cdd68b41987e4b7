// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
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

// Places knows which files are refused as PATH.
type Places struct {
	kernels map[uint64]string // filesystems of the kernel's own, by device
	taken   map[file]string   // the system's directories and homes, and what holds one: why
}

type file struct{ dev, ino uint64 }

const systems = "a system directory"

// Places looks them up. Homes on a served filesystem are left out, and the system's directories
// where there are not several PATHs: the engine refuses a single one before it begins.
func (all Mounts) Places(several bool) Places {
	p := Places{map[uint64]string{}, map[file]string{}}
	for _, m := range all {
		if kernels(m) {
			var major, minor uint64
			if n, _ := fmt.Sscanf(m.Device, "%d:%d", &major, &minor); n == 2 {
				p.kernels[minor&0xff|major&0xfff<<8|minor&^0xff<<12|major&^0xfff<<32] = m.FSType
			}
		}
	}
	if several {
		for _, dir := range mountinfo.NeverWhole {
			p.take(dir, systems)
		}
	}
	users := homes()
	for _, dir := range all.ByServer(slices.Sorted(maps.Keys(users)))[0] {
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

// Unknown reports whether there are policies beneath dir, which is /etc/selinux, and none has a
// type of that name.
func Unknown(dir, name string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*/policy/policy.*"))
	some := false
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || bytes.Contains(text, []byte(name)) {
			return false
		}
		some = true
	}
	return some
}
