// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseTrace(t *testing.T) {
	const text = `7 execve("\x2f\x78", ["\x78", "\x61\x29\x62"], 0x7ff /* 3 vars */ <unfinished ...>
8 +++ superseded by execve in pid 7 +++
7 <... execve resumed>) = 0
7 openat(AT_FDCWD<\x2f\x77>, "\x64\x0a\x69\x22\x72\x29", O_RDONLY|O_DIRECTORY <unfinished ...>
9 syscall_0x1d0(0xffffff9c, 0x55, 0x100, 0x66, 0x77, 0x10 <unfinished ...>
7 <... openat resumed>) = 3<\x2f\x77\x2f\x64\x0a\x69\x22\x72\x29\x3c>
9 <... syscall_0x1d0 resumed>) = -1 ENODATA (No data available)
9 syscall_0x1cf(0x3, 0x55, 0x100, 0x66, 0x77, 0x10) = 0
9 getdents64(3<\x2f\x77\x2f\x64\x0a\x69\x22\x72\x29\x3c>,  <unfinished ...>
7 openat2(3<\x2f\x77\x2f\x64\x0a\x69\x22\x72\x29\x3c>, "\x7f\x32\xff", {flags=O_RDONLY|O_PATH, resolve=RESOLVE_BENEATH}, 24) = 4<\x2f\x77\x2f\x78>
9 <... getdents64 resumed>0x7f /* 9 entries */, 4096) = 216
7 --- SIGURG {si_signo=SIGURG} ---
7 close(3<\x2f\x77\x2f\x64\x0a\x69\x22\x72\x29\x3c>) = 0
7 syscall_0x1cf(0x3, 0x55, 0x100, 0x66, 0x77, 0x10) = -1 EBADF (Bad file descriptor)
7 capset({a=1<<CAP_X, b=[{x=1}]}, NULL) = 0
9 ???( <unfinished ...>
7 exit_group(0) = ?
9 <... ??? resumed>) = ?
9 +++ exited with 0 +++
`
	dir := "/w/d\ni\"r)<"
	calls, err := parseTrace(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []Call{
		{7, "openat", []string{"AT_FDCWD</w>", `"d\ni\"r)"`, "O_RDONLY|O_DIRECTORY"}, `3</w/d\ni\"r)<>`, "/w"},
		{9, "getxattrat", []string{"0xffffff9c", "0x55", "0x100", "0x66", "0x77", "0x10"}, "-1 ENODATA (No data available)", ""},
		{9, "setxattrat", []string{"0x3", "0x55", "0x100", "0x66", "0x77", "0x10"}, "0", dir},
		{9, "getdents64", []string{`3</w/d\ni\"r)<>`, "0x7f /* 9 entries */", "4096"}, "216", dir},
		{7, "openat2", []string{`3</w/d\ni\"r)<>`, `"\x7f2\xff"`, "{flags=O_RDONLY|O_PATH, resolve=RESOLVE_BENEATH}", "24"}, "4</w/x>", dir},
		{7, "close", []string{`3</w/d\ni\"r)<>`}, "0", dir},
		{7, "setxattrat", []string{"0x3", "0x55", "0x100", "0x66", "0x77", "0x10"}, "-1 EBADF (Bad file descriptor)", ""},
		{7, "capset", []string{"{a=1<<CAP_X, b=[{x=1}]}", "NULL"}, "0", ""},
		{9, "???", nil, "?", ""}, // a thread that ended as it made a call
		{7, "exit_group", []string{"0"}, "?", ""},
	}
	if len(calls) != len(want) {
		t.Fatalf("%d calls, want %d: %+v", len(calls), len(want), calls)
	}
	for i := range want {
		if !reflect.DeepEqual(calls[i], want[i]) {
			t.Errorf("%d:\n%+v, want\n%+v", i, calls[i], want[i])
		}
	}
	if p, ok := calls[4].Path(); !ok || p != "\x7f2\xff" || !strings.Contains(calls[4].Flags(), "O_PATH") {
		t.Errorf("%q, %v", p, ok)
	}
}

func TestDeny(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	cmd := exec.Command("mkdir", dir)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "KEPT=1")
	answers := map[int]syscall.Errno{unix.SYS_MKDIRAT: unix.ENOSYS, mkdirNumber(): unix.ENOSYS}
	Deny(t, cmd, answers)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Function not implemented") {
		t.Errorf("mkdir: %v\n%s", err, out)
	}
	cmd = exec.Command("sh", "-c", `echo "$KEPT $FASTLABEL_FILTER $0 $1"; exit 3`, "zero", "one")
	cmd.Env = append(os.Environ(), "KEPT=1")
	Deny(t, cmd, answers)
	out, err = cmd.CombinedOutput()
	if string(out) != "1  zero one\n" || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("sh: %v\n%s", err, out)
	}
	for _, rules := range []string{"", "x=1", "1", "1=", "-1=1", "1=4096"} {
		if _, err := filterOf(rules); err == nil {
			t.Errorf("%q makes a filter", rules)
		}
	}
}

// mkdirNumber is that of mkdir(2) where there is one; elsewhere a number that
// no call has.
func mkdirNumber() int {
	if unix.SYS_MKDIRAT == 258 { // amd64, where mkdir is 83
		return 83
	}
	return 1 << 20
}
