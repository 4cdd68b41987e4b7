// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Deny makes cmd run under a seccomp filter that answers each system call of
// answers with its errno and lets all others pass. The program under test
// knows nothing of it: the child begins as this test binary, whose Main sets
// the filter and becomes the command. Call it last before cmd is started. A
// filter on execve, or on what the runtime needs to start, ends the child.
func Deny(t testing.TB, cmd *exec.Cmd, answers map[int]syscall.Errno) {
	t.Helper()
	Need(t, "seccomp")
	if bench.kinds == nil {
		t.Fatal(errNoMain)
	}
	if cmd.Err != nil {
		t.Fatal(cmd.Err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, nr := range slices.Sorted(maps.Keys(answers)) {
		rules = append(rules, fmt.Sprintf("%d=%d", nr, int(answers[nr])))
	}
	cmd.Args = append([]string{self, cmd.Path}, cmd.Args...)
	cmd.Path = self
	cmd.Env = append(cmd.Environ(), denyEnv+"="+strings.Join(rules, ","))
}

// denyAndExec sets the filter and becomes the command. It returns only an
// error.
func denyAndExec(rules string) error {
	runtime.LockOSThread()
	if _, err := setFilter(rules, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
		return err
	}
	return become(denyEnv)
}

// become executes os.Args[1] with the arguments that follow, without the
// setting that brought the program here.
func become(setting string) error {
	if len(os.Args) < 3 {
		return fmt.Errorf("%s is set, but there is no command: %q", setting, os.Args)
	}
	if err := os.Unsetenv(setting); err != nil {
		return err
	}
	return fmt.Errorf("exec %s: %w", os.Args[1], syscall.Exec(os.Args[1], os.Args[2:], os.Environ()))
}

// setFilter puts the thread behind the filter and gives what the call gives:
// 0, or the listener if the flags ask for one.
func setFilter(rules string, flags uintptr) (int, error) {
	filter, err := filterOf(rules)
	if err != nil {
		return 0, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("PR_SET_NO_NEW_PRIVS: %w", err)
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		return 0, fmt.Errorf("seccomp: %w", e)
	}
	return int(fd), nil
}

// ask is what a rule has in place of an errno where Supervise decides.
const ask = "ask"

// filterOf writes the classic BPF program: pass a foreign architecture, then
// two instructions a rule, then pass.
func filterOf(rules string) ([]unix.SockFilter, error) {
	arch, err := auditArch()
	if err != nil {
		return nil, err
	}
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		answer = unix.BPF_RET | unix.BPF_K
		nr     = 0 // struct seccomp_data: int nr; __u32 arch; ...
		archAt = 4
	)
	pass := unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW}
	prog := []unix.SockFilter{
		{Code: load, K: archAt},
		{Code: equal, K: arch, Jt: 1},
		pass,
		{Code: load, K: nr},
	}
	for rule := range strings.SplitSeq(rules, ",") {
		call, errno, _ := strings.Cut(rule, "=")
		n, err1 := strconv.ParseUint(call, 10, 32)
		action := uint32(unix.SECCOMP_RET_USER_NOTIF)
		var err2 error
		if errno != ask {
			var e uint64
			e, err2 = strconv.ParseUint(errno, 10, 12)
			action = unix.SECCOMP_RET_ERRNO | uint32(e)
		}
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("rule %q is not NUMBER=ERRNO", rule)
		}
		prog = append(prog,
			unix.SockFilter{Code: equal, K: uint32(n), Jf: 1},
			unix.SockFilter{Code: answer, K: action})
	}
	return append(prog, pass), nil
}

// auditArch is the kernel's name for the architecture in a filter.
func auditArch() (uint32, error) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, nil
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, nil
	}
	return 0, fmt.Errorf("no filter for %s", runtime.GOARCH)
}
