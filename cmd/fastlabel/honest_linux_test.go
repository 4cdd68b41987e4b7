// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/selinux/go-selinux"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
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
	treetest.Must(t, err)
	treetest.Must(t, os.WriteFile("passwd", fmt.Appendf(passwd, "alice:x:1717:1717::%s/link/alice:/bin/sh\nd:x:717:717::%s/daemon:/bin/sh\n", dir, dir), 0o644))
	treetest.Must(t, syscall.Mount("passwd", "/etc/passwd", "", syscall.MS_BIND, ""))
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

// A read-only PATH is one sentence and exit 3, unless everything there is right.
func TestReadOnly(t *testing.T) {
	treetest.Need(t, "root", "plain")
	v := filepath.Join(t.TempDir(), "v")
	treetest.Build(t, v, treetest.Text(t, "dir .\ndir sub\nfile a\nfile sub/b\n"))
	expects(t, real(), "-q -t usr_t "+v, exit.Done, "")
	treetest.Must(t, syscall.Mount(v, v, "", syscall.MS_BIND, ""))
	defer func() { _ = syscall.Unmount(v, syscall.MNT_DETACH) }()
	treetest.Must(t, syscall.Mount("", v, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	const sentence = `relabel: read-only file system: not everything has the label, and nothing was written`
	for line, want := range map[string]string{
		"-v " + v:             `2> fastlabel: "` + v + `": ` + sentence + "\nexit 3\n\n",
		"-q " + v:             `2> fastlabel: "` + v + `": ` + sentence + "\nexit 3\n\n",
		"-q -t usr_t " + v:    "exit 0\n\n",
		"-q -n " + v:          `2> fastlabel: "` + v + `": ` + sentence + "\nexit 3\n\n",
		"-n -q -t usr_t " + v: "exit 0\n\n",
		"verify -q " + v:      "exit 4\n\n",
	} {
		if _, got, _ := strings.Cut(transcript(real(), calls(line)), "\n"); got != want {
			t.Errorf("%s:\n%s\nnot\n%s", line, got, want)
		}
	}
	text := transcript(real(), calls("--json "+v))
	if strings.Count(text, `"message_type":"error"`) != 1 || !strings.Contains(text, `"errno":"EROFS"`) || !strings.Contains(text, `"exit_code":3,"reason":"read-only"`) {
		t.Error(text)
	}
	if have, err := selinux.FileLabel(v + "/sub/b"); have != "system_u:object_r:usr_t:s0" || err != nil {
		t.Error(have, err)
	}
}

// One who is not root is told so once.
func TestNotRoot(t *testing.T) {
	treetest.Need(t, "root", "plain")
	dir, err := os.MkdirTemp("/tmp", "fastlabel-notroot-")
	treetest.Must(t, err)
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "program")
	self, err := os.ReadFile(os.Args[0])
	treetest.Must(t, err)
	treetest.Must(t, os.WriteFile(bin, self, 0o755), os.Chmod(dir, 0o755))
	for i := range 30 {
		treetest.Must(t, os.WriteFile(filepath.Join(dir, "f"+strings.Repeat("x", i)), nil, 0o644))
	}
	said, code := asNobody(bin, dir)
	if n := strings.Count(said, "not root: 31 of its entries belong to others, or are closed to this user; -v lists all\n"); n != 1 || strings.Contains(said, "not permitted") {
		t.Errorf("%d times:\n%s", n, said)
	}
	if code != exit.Failed {
		t.Errorf("exit %d", code)
	}
	for name, mode := range map[string]os.FileMode{"closed": 0o700, "open": 0o755, "other": 0o755} {
		treetest.Must(t, os.Mkdir(filepath.Join(dir, name), mode), os.Chmod(filepath.Join(dir, name), mode))
	}
	// That there is no place for locks is true of all PATHs.
	if said, _ = asNobody(bin, filepath.Join(dir, "open"), filepath.Join(dir, "other")); strings.Count(said, "no lock was taken") != 1 {
		t.Errorf("of locks:\n%s", said)
	}
	// probe has no result that would tell.
	if said, _ = asNobody(bin, "probe", filepath.Join(dir, "closed/v")); !strings.HasPrefix(said, "fastlabel: ") || !strings.HasSuffix(said, ": permission denied\n") {
		t.Errorf("probe says %q", said)
	}
}

// asNobody runs the command as a user without rights.
func asNobody(bin string, args ...string) (said string, code int) {
	cmd := exec.Command(bin, args...)
	cmd.Env = []string{"FASTLABEL_TEST_AS=real"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	text, _ := cmd.CombinedOutput()
	return string(text), cmd.ProcessState.ExitCode()
}

// One who names a link is told that it was taken for itself.
func TestLink(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	treetest.Must(t, os.Mkdir("dir", 0o700))
	treetest.Must(t, os.WriteFile("file", nil, 0o600))
	for name, to := range map[string]string{"link": "dir", "dangling": "none", "image": "file"} {
		treetest.Must(t, os.Symlink(to, name))
	}
	for line, want := range map[string]string{
		"link":        "link: it is a symbolic link: only the link was labelled; write link/ for the directory\n",
		"verify link": "link: it is a symbolic link: only the link was looked at; write link/ for the directory\n",
		"probe link":  "link: it is a symbolic link: only the link was looked at; write link/ for the directory\n",
		"image":       "image: it is a symbolic link: only the link was labelled\n",
		"link/":       "",
		"probe link/": "",
		"dangling":    "",
		"dir":         "",
	} {
		text := transcript(real(), calls(line))
		if strings.Contains(text, "symbolic") != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%s: %s", line, text)
		}
	}
}

// The list of -v comes before the line that sums it up, also where both go to
// one file.
func TestListFirst(t *testing.T) {
	var both bytes.Buffer
	fake().run(t.Context(), nil, &both, &both, []string{"-v", "/changes"})
	if lines := strings.Split(both.String(), "\n"); len(lines) != 5 || !strings.HasPrefix(lines[3], "fastlabel: /changes: 5 entries") {
		t.Errorf("%q", lines)
	}
}
