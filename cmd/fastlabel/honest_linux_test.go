// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// expects holds a call against its exit code and a part of what it says.
func expects(t *testing.T, a app, line string, code int, part string) {
	t.Helper()
	text := transcript(a, calls(line))
	if !strings.HasSuffix(text, fmt.Sprintf("\nexit %d\n\n", code)) || !strings.Contains(text, part) {
		t.Errorf("want exit %d and %q:\n%s", code, part, text)
	}
}

// What is no volume is refused before the first PATH is labelled, whatever the command.
func TestRefusedPaths(t *testing.T) {
	treetest.Need(t, "root", "plain")
	ownRuntime(t)
	t.Chdir(t.TempDir())
	plant(t, "vol", 1, 1)
	for name, kind := range map[string]uint32{"null": syscall.S_IFCHR, "disk": syscall.S_IFBLK, "fifo": syscall.S_IFIFO} {
		treetest.Must(t, syscall.Mknod(name, kind|0o600, 1<<8|3))
	}
	l, err := net.Listen("unix", "sock")
	treetest.Must(t, err)
	defer l.Close()
	before := treetest.Read(t, ".")
	for path, part := range map[string]string{
		"null": "null: refused: it is a device; nothing was begun; give the directory where it is mounted\n",
		"disk": "disk: refused: it is a device; nothing was begun; give the directory where it is mounted\n",
		"fifo": "it is a FIFO or a socket; nothing was begun; give the directory that it lies in\n", "sock": "it is a FIFO or a socket",
		"/dev/null": "it is a device", "/dev/stdin": "kernel's own (devtmpfs)", "/proc/self/status": "kernel's own (proc)", "/sys": "it lies in a filesystem of the kernel's own (sysfs)",
		"/etc": "it is a system directory; nothing was begun; to restore its labels: fastlabel restorecon -R /etc\n", "/etc/../etc/": "it is a system directory", "/": "it is a system directory", "/home": "it is a system directory",
	} {
		for _, command := range []string{"", "-n", "--only type", "verify", "probe", "--json"} {
			expects(t, real(), command+" vol "+path, 3, part)
		}
		expects(t, real(), path, 3, "efused")
		if text := transcript(real(), calls("restorecon -n --contexts none "+path)); strings.Contains(text, "refused") {
			t.Error(text)
		}
	}
	expects(t, real(), "-n -e null vol -e vol/d0", 2, "it lies in no PATH")
	if d := treetest.Diff(before, treetest.Read(t, ".")); len(d) > 0 {
		t.Error(d)
	}
}

// A home of somebody in passwd is refused, with what holds it, and what lies in it is not.
func TestHomes(t *testing.T) {
	treetest.Need(t, "root", "plain")
	ownRuntime(t)
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	treetest.Must(t, err)
	for _, home := range []string{"people/alice/pv", "daemon/pv"} {
		plant(t, home, 1, 1)
	}
	treetest.Must(t, os.Symlink("people", "link"))
	passwd, err := os.ReadFile("/etc/passwd")
	if err == nil {
		err = os.WriteFile("passwd", fmt.Appendf(passwd, "alice:x:1717:1717::%s/link/alice:/bin/sh\nd:x:717:717::%s/daemon:/bin/sh\n", dir, dir), 0o644)
	}
	if err == nil {
		err = syscall.Mount("passwd", "/etc/passwd", "", syscall.MS_BIND, "")
	}
	treetest.Must(t, err)
	defer func() { _ = syscall.Unmount("/etc/passwd", syscall.MNT_DETACH) }()
	for path, verb := range map[string]string{"people/alice": "is", "people/alice/": "is", "link/alice": "is", "people": "holds", "link/": "holds"} {
		expects(t, real(), path, 3, ": refused: it "+verb+" the home of alice; nothing was begun; to restore its labels: fastlabel restorecon -R "+path+"\n")
		expects(t, real(), "-n daemon "+path, 3, "the home of alice")
	}
	expects(t, real(), "people/alice/pv daemon", 0, "daemon: ")
	t.Setenv("HOME", dir+"/daemon")
	expects(t, real(), "-n daemon people/alice/pv", 3, "the home of the caller")
}

// -n, verify and probe ask for a level where PATH has one of its own: to compare with the default
// would advise to open the volume to all containers.
func TestOwnLevel(t *testing.T) {
	treetest.Need(t, "root", "plain")
	ownRuntime(t)
	t.Chdir(t.TempDir())
	plant(t, "pv", 1, 1)
	plant(t, "other", 1, 1)
	expects(t, real(), "-q -l s0:c35,c75 pv", 0, "")
	for _, line := range []string{"-n", "-n -v", "verify", "probe", "-n --only level", "-n -u u_u", "verify other"} {
		expects(t, real(), line+" pv", 2, "pv: it has a level of its own; nothing was begun; -l s0:c35,c75 compares with that, -l s0 with what all containers share\n")
	}
	for line, code := range map[string]int{
		"-n -l s0:c35,c75": 0, "verify -l s0:c35,c75": 0, "probe -l s0:c35,c75": 0, "-n -l s0": 4, "probe -l s0": 4, "-n -t usr_t": 4,
		"-n --label u:r:t:s0": 4, "verify --reference pv": 0, "-n --only type": 0,
	} {
		expects(t, real(), line+" pv", code, "")
	}
	for _, line := range []string{"-n other", "verify other", "probe other"} {
		expects(t, real(), line, 4, "")
	}
	setLabel(t, "pv", "u:r:svirt_t")
	expects(t, real(), "-n pv", 4, "to write")
}

// An empty PATH on which nothing is mounted is asked about, once.
func TestEmptyPath(t *testing.T) {
	treetest.Need(t, "root", "plain")
	ownRuntime(t)
	t.Chdir(t.TempDir())
	for _, dir := range []string{"a", "b", "mounted", "bound"} {
		treetest.Must(t, os.Mkdir(dir, 0o700))
	}
	treetest.Must(t, syscall.Mount("none", "mounted", "tmpfs", 0, ""))
	defer func() { _ = syscall.Unmount("mounted", syscall.MNT_DETACH) }()
	treetest.Must(t, syscall.Mount("b", "bound", "", syscall.MS_BIND, ""))
	defer func() { _ = syscall.Unmount("bound", syscall.MNT_DETACH) }()
	for _, line := range []string{"-n a", "a", "verify a", "-n a/ b mounted", "--json a"} {
		if text := transcript(real(), calls(line)); strings.Count(text, "it is empty, and nothing is mounted there: is its volume mounted?") != 1 {
			t.Error(text)
		}
	}
	treetest.Must(t, os.WriteFile("f", nil, 0o600))
	if text := transcript(real(), calls("mounted", "bound", "-n f", "-q a", "--skip root a")); strings.Contains(text, "empty") {
		t.Error(text)
	}
}

// Where SELinux is off one line says so.
func TestSELinuxOff(t *testing.T) {
	a := fake()
	a.off = func() bool { return true }
	for _, line := range []string{"/one /changes", "-n /one", "verify /one", "probe /right /top", "--json /one"} {
		if text := transcript(a, calls(line)); strings.Count(text, "SELinux is off: labels are stored all the same, and count where it is on") != 1 {
			t.Error(text)
		}
	}
	if text := transcript(a, calls("-q /one")) + transcript(fake(), calls("/one")); strings.Contains(text, "SELinux is off") {
		t.Error(text)
	}
	expects(t, a, "-t container_flie_t /one", 2, "--type container_flie_t: did you mean container_file_t?; nothing was begun; if it is meant: --label system_u:object_r:container_flie_t:s0\n")
	expects(t, a, "-t container_log_t /one", 0, "container_log_t")
	expects(t, a, "--label system_u:object_r:container_flie_t:s0 /one", 0, "container_flie_t")
}
