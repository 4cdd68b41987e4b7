// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// command is what is tested; FASTLABEL_COMMAND names another.
var command = cmp.Or(os.Getenv("FASTLABEL_COMMAND"), "/payload/fastlabel")

const (
	fileType = "system_u:object_r:container_file_t:"
	labelA   = fileType + "s0:c1,c2"
	labelB   = fileType + "s0:c3,c4"
	shared   = fileType + "s0"

	domain  = "system_u:system_r:container_t:"
	domainA = domain + "s0:c1,c2"
	domainB = domain + "s0:c3,c4"
	domainC = domain + "s0:c5,c6" // nobody's volume
)

// program is this program with a label under which a container may run it.
var program string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "role-") {
		os.Exit(play(os.Args[1], os.Args[2:]))
	}
	if enforce, err := os.ReadFile("/sys/fs/selinux/enforce"); err != nil || string(enforce) != "1" {
		fmt.Fprintln(os.Stderr, "inside: SELinux is not enforcing here, NOTHING WAS RUN: make test-selinux boots a machine where it is")
		if os.Getenv("CI") != "" {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if err := install(); err != nil {
		fmt.Fprintln(os.Stderr, "inside:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func install() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	program = "/volumes/tmpfs/inside.test"
	if err := os.WriteFile(program, text, 0o755); err != nil {
		return err
	}
	return unix.Lsetxattr(program, treetest.Attr, []byte(shared), 0)
}

// volumes are the machine's, by their filesystems.
var volumes = []string{"ext4", "xfs", "tmpfs"}

// each runs test on each volume of the machine, in a fresh directory that
// every container may search.
func each(t *testing.T, test func(t *testing.T, dir string)) { eachOf(t, volumes, test) }

// eachOf does so on some of the volumes.
func eachOf(t *testing.T, names []string, test func(t *testing.T, dir string)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) { test(t, fresh(t, name)) })
	}
}

// fresh is a directory on a volume.
func fresh(t *testing.T, volume string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/volumes/"+volume, "t-")
	treetest.Must(t, err)
	treetest.Must(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// volume is what the tests label. Containers may neither read nor list what has its
// label.
const volume = `
default label=system_u:object_r:mysqld_db_t:s0
dir .
file top
dir a/b/c
file a/b/c/deep
file a/f%d x40
link a/link f0
fifo a/fifo
socket a/socket
`

// grow makes the volume below dir.
func grow(t *testing.T, dir string) string {
	t.Helper()
	root := filepath.Join(dir, "volume")
	treetest.Build(t, root, treetest.Text(t, volume))
	return root
}

// home makes the volume below dir, of what users keep at home.
func home(t *testing.T, dir string) string {
	t.Helper()
	root := grow(t, dir)
	treetest.Label(t, root, oldLabel)
	return root
}

// label runs the command, which must end with code, and gives its output.
func label(t *testing.T, code int, args ...string) string {
	t.Helper()
	cmd := exec.Command(command, args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("%s: exit code %d, not %d\n%s", cmd, got, code, out)
	}
	return string(out)
}

// all fails the test unless everything below root has label.
func all(t *testing.T, root, label string) {
	t.Helper()
	wrong := 0
	for path, got := range treetest.Read(t, root) {
		if got == label {
			continue
		}
		if wrong++; wrong <= 5 {
			t.Errorf("%s has %s, not %s", path, got, label)
		}
	}
	if wrong > 5 {
		t.Errorf("and %d more", wrong-5)
	}
}

// labelOf is the label of one entry.
func labelOf(t *testing.T, path string) string {
	t.Helper()
	label, err := readLabel(path)
	treetest.Must(t, err)
	return label
}

func readLabel(path string) (string, error) {
	buf := make([]byte, 4096)
	n, err := unix.Lgetxattr(path, treetest.Attr, buf)
	if err != nil {
		return "", &fs.PathError{Op: "lgetxattr", Path: path, Err: err}
	}
	return string(bytes.TrimRight(buf[:n], "\x00")), nil
}

// confine is a process of this program in a domain, to be started by start.
func confine(role string, args ...string) *exec.Cmd {
	return exec.Command(program, append([]string{"role-" + role}, args...)...)
}

// start starts a process in a domain. The domain is set for the thread, and
// what it starts next has it.
func start(t *testing.T, context string, cmd *exec.Cmd) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := os.WriteFile("/proc/thread-self/attr/exec", []byte(context), 0); err != nil {
		t.Fatalf("%s: %v", context, err)
	}
	err := cmd.Start()
	treetest.Must(t, os.WriteFile("/proc/thread-self/attr/exec", nil, 0))
	if err != nil {
		t.Fatalf("%s: %v", context, err)
	}
}

// as gives the errno that a process in the domain met in its role, or 0.
func as(t *testing.T, context, role string, args ...string) syscall.Errno {
	t.Helper()
	cmd := confine(role, args...)
	start(t, context, cmd)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() < 0 || cmd.ProcessState.ExitCode() == noErrno {
		t.Fatalf("%s in %s: %v", cmd, context, err)
	}
	return syscall.Errno(cmd.ProcessState.ExitCode())
}

// may fails the test unless the domain reads path, or is denied to if not may.
func may(t *testing.T, may bool, context, path string) {
	t.Helper()
	want := syscall.Errno(0)
	if !may {
		want = syscall.EACCES
	}
	if got := as(t, context, "read", path); got != want {
		t.Errorf("%s, which has %s, read in %s: %v, not %v", path, labelOf(t, path), context, got, want)
	}
}
