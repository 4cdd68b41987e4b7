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
	var rules []string
	for _, nr := range slices.Sorted(maps.Keys(answers)) {
		rules = append(rules, fmt.Sprintf("%d=%d", nr, int(answers[nr])))
	}
	filter(t, cmd, 0, rules)
}

// filter makes cmd begin as this test binary, whose Main sets a filter of those rules, sends
// its listener to the socket, unless that is 0, and becomes the command. If cmd has rules
// already one filter is for all, set once: its own start is nobody's call.
func filter(t testing.TB, cmd *exec.Cmd, socket int, rules []string) {
	t.Helper()
	Need(t, "seccomp")
	if bench.kinds == nil {
		t.Fatal(errNoMain)
	}
	self, err := os.Executable()
	Must(t, cmd.Err, err)
	env := cmd.Environ()
	if at := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, filterEnv+"=") }); at >= 0 {
		_, more, _ := strings.Cut(env[at], ":")
		rules, env = append(rules, more), slices.Delete(env, at, at+1)
	} else {
		cmd.Args = append([]string{self, cmd.Path}, cmd.Args...)
		cmd.Path = self
	}
	cmd.Env = slices.Concat(env, []string{fmt.Sprintf("%s=%d:%s", filterEnv, socket, strings.Join(rules, ","))})
}

// filterAndExec is the child's half: it sets the filter, sends the listener and becomes the
// command, which is os.Args[1] and has the arguments that follow. It returns only an error.
func filterAndExec(setting string) error {
	number, rules, _ := strings.Cut(setting, ":")
	socket, err := strconv.Atoi(number)
	if err != nil || len(os.Args) < 3 {
		return fmt.Errorf("%s=%s, and the command %q", filterEnv, setting, os.Args[1:])
	}
	prog, err := filterOf(rules)
	if err != nil {
		return err
	}
	// The filter holds for this thread, which is the one that becomes the
	// command.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_NO_NEW_PRIVS: %w", err)
	}
	flags := uintptr(0)
	if socket != 0 {
		// A call that was received here is interrupted by fatal signals only:
		// those by which Go preempts would make it begin twice.
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	listener, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(&unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]})))
	if e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	if socket != 0 {
		if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(int(listener)), nil, 0); err != nil {
			return fmt.Errorf("send the listener: %w", err)
		}
		unix.CloseOnExec(socket)
	}
	if err := os.Unsetenv(filterEnv); err != nil {
		return err
	}
	return fmt.Errorf("exec %s: %w", os.Args[1], syscall.Exec(os.Args[1], os.Args[2:], os.Environ()))
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
