// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// The labels that trees have before, get, and are relabelled to next.
const (
	oldLabel  = "system_u:object_r:container_file_t:s0:c1,c2"
	newLabel  = "system_u:object_r:container_file_t:s0:c3,c4"
	nextLabel = "system_u:object_r:container_file_t:s0:c5,c6"
)

// way is how the engine reaches entries, and the answers of the kernel that
// lead it there.
type way struct {
	name string // as the command says it
	deny map[int]syscall.Errno
}

// ways are all of them: today's kernel, the one without setxattrat (6.12 and
// before), the one without unshare of the working directory too, the process
// without the right to mount, and Linux 4.18.
var ways = []way{
	{"clone/setxattrat", nil},
	{"clone/fchdir", map[int]syscall.Errno{unix.SYS_SETXATTRAT: unix.ENOSYS, unix.SYS_GETXATTRAT: unix.ENOSYS}},
	{"clone/fd", map[int]syscall.Errno{
		unix.SYS_SETXATTRAT: unix.ENOSYS, unix.SYS_GETXATTRAT: unix.ENOSYS, unix.SYS_UNSHARE: unix.EPERM,
	}},
	{"openat2/fd", map[int]syscall.Errno{unix.SYS_OPEN_TREE: unix.EPERM}},
	{"mountid/fd", map[int]syscall.Errno{
		unix.SYS_OPEN_TREE: unix.ENOSYS, unix.SYS_OPENAT2: unix.ENOSYS, unix.SYS_MOUNT_SETATTR: unix.ENOSYS,
		unix.SYS_SETXATTRAT: unix.ENOSYS, unix.SYS_GETXATTRAT: unix.ENOSYS,
	}},
}

// on prepares cmd to run under the way's kernel.
func (w way) on(t testing.TB, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	if w.deny != nil {
		treetest.Deny(t, cmd, w.deny)
	}
	return cmd
}

// exitCode runs cmd and gives its exit code; output goes to the test's log if
// it could not be run at all, or died.
func exitCode(t testing.TB, cmd *exec.Cmd) int {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || exit != nil && exit.ExitCode() < 0 {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return cmd.ProcessState.ExitCode()
}

// differing counts the entries of root, itself included, that do not have
// label.
func differing(t testing.TB, root, label string) int {
	t.Helper()
	n := 0
	for _, l := range treetest.Read(t, root) {
		if l != label {
			n++
		}
	}
	return n
}
