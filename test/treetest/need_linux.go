// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// promiseEnv lists, with commas, what the machine can do.
const promiseEnv = "FASTLABEL_PROMISE"

// Promised reports whether FASTLABEL_PROMISE names what.
func Promised(what string) bool {
	return slices.Contains(strings.Split(os.Getenv(promiseEnv), ","), what)
}

// Lack skips the test for want of what, or fails it if FASTLABEL_PROMISE says
// that the machine has it.
func Lack(t testing.TB, what string, why error) {
	t.Helper()
	if Promised(what) {
		t.Fatalf("%s was promised (%s): %v", what, promiseEnv, why)
	}
	t.Skipf("needs %s: %v", what, why)
}

// Need goes on only if the machine has each of what; if not, Lack decides.
//
//	root                     mounts, in the namespace that Main makes
//	ext4, xfs, btrfs, tmpfs  a filesystem that can be made and mounted
//	overlay, fuse            the kernel has it, and there is /dev/fuse
//	setxattrat               the kernel has the call (6.13)
//	seccomp                  Deny works
//	selinux                  SELinux is on
//	plain                    it is off: a label is an attribute like others
//	anything else            a program of that name in PATH: strace, cc
func Need(t testing.TB, what ...string) {
	t.Helper()
	for _, w := range what {
		if err := has(w); err != nil {
			Lack(t, w, err)
		}
	}
}

func has(what string) error {
	switch what {
	case "root":
		if os.Geteuid() != 0 {
			return fmt.Errorf("the user is %d", os.Geteuid())
		}
		return canMount()
	case "ext4", "xfs", "btrfs", "tmpfs":
		_, err := sharedFS(what)
		return err
	case "overlay":
		return kernelFS("overlay")
	case "fuse":
		f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return f.Close()
	case "setxattrat":
		// A descriptor that is none: EBADF, or EINVAL for the size, if the
		// call is there at all.
		if _, _, e := unix.Syscall6(unix.SYS_SETXATTRAT, ^uintptr(0), 0, 0, 0, 0, 0); e == unix.ENOSYS || e == unix.EPERM {
			return e
		}
		return nil
	case "seccomp":
		if _, err := auditArch(); err != nil {
			return err
		}
		// Mode "filter" without a program: EFAULT if it is there.
		if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, 0); e != unix.EFAULT {
			return e
		}
		return nil
	case "selinux":
		_, err := os.Stat(enforce)
		return err
	case "plain":
		if Policed() {
			return errors.New("SELinux is on")
		}
		return nil
	}
	_, err := exec.LookPath(what)
	return err
}

// enforce is there where SELinux is on.
const enforce = "/sys/fs/selinux/enforce"

// Policed reports whether SELinux is on. If so, no entry is without a label, what
// the policy does not know is refused, and what is read ends with a NUL, whatever
// was written.
func Policed() bool {
	_, err := os.Stat(enforce)
	return err == nil
}

// kernelFS asks the kernel's list, which holds modules only once loaded.
func kernelFS(name string) error {
	list, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(list)), name) {
		return errors.New("not in /proc/filesystems")
	}
	return nil
}
