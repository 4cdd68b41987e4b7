// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Class says what a call is for.
type Class int

// The classes that tests count.
const (
	Other     Class = iota
	ReadAttr        // getxattr and its kin, getxattrat included
	WriteAttr       // setxattr and its kin, setxattrat included
	ListAttr        // listxattr, removexattr and their kin
	Entries         // getdents64, getdents
	Open            // open, openat, openat2, creat, open_tree, open_by_handle_at
	Stat            // stat, statx and their kin
)

// Call is one system call of a traced program.
type Call struct {
	PID  int
	Name string   // setxattrat and its kin by name even if strace knows only numbers
	Args []string // as strace prints them, strings and paths as Go does; of a call that it does not know, numbers
	Ret  string   // "0", "3</path>", "-1 ENOENT (No such file or directory)"
	// Dir is the path of the descriptor that is the call's first argument, as
	// far as the trace tells.
	Dir string
}

// noise are calls of the runtime that say nothing about files.
const noise = "trace=!futex,madvise,mmap,munmap,mprotect,brk,rt_sigprocmask,rt_sigaction,rt_sigreturn," +
	"sigaltstack,nanosleep,clock_nanosleep,clock_gettime,sched_yield,sched_getaffinity," +
	"epoll_pwait,tgkill,getpid,gettid,set_robust_list,rseq"

// Trace runs a program under strace, all its threads, and gives its system
// calls in the order in which they began. The test fails if the program does.
func Trace(t testing.TB, binary string, args ...string) []Call {
	t.Helper()
	return TraceCmd(t, exec.Command(binary, args...))
}

// TraceCmd does the same for a prepared command. After Deny(t, cmd, ...) the calls
// are those after the last execve of the first process: the program's own.
//
// Names that strace 6.1 cannot see: it knows setxattrat and getxattrat only
// by number and prints their strings as addresses. Dir tells the directory.
func TraceCmd(t testing.TB, cmd *exec.Cmd) []Call {
	t.Helper()
	Need(t, "strace")
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatal(err)
	}
	if cmd.Err != nil {
		t.Fatal(cmd.Err)
	}
	log := filepath.Join(t.TempDir(), "strace")
	// 4096 bytes of each string: PATH_MAX. -y: the paths of descriptors. -xx: in strings and
	// paths is no byte that ends them, or an argument.
	cmd.Args = append([]string{strace, "-f", "-y", "-xx", "-s", "4096", "-e", noise, "-e", "signal=none", "-o", log, "--", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = strace
	// Go's preemption by signals makes calls begin twice; and once a second it
	// reads in /sys and /proc how many processors there are.
	cmd.Env = append(cmd.Environ(), "GODEBUG=asyncpreemptoff=1,updatemaxprocs=0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	ended := cmd.Run()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatalf("strace left no trace: %v\n%s", ended, out.Bytes())
	}
	calls, err := parseTrace(string(text))
	Must(t, err)
	if ended != nil {
		t.Fatalf("%s: %v\n%s", cmd, ended, out.Bytes())
	}
	return calls
}

// Class classifies the call by its name.
func (c Call) Class() Class {
	switch c.Name {
	case "getxattr", "lgetxattr", "fgetxattr", "getxattrat":
		return ReadAttr
	case "setxattr", "lsetxattr", "fsetxattr", "setxattrat":
		return WriteAttr
	case "listxattr", "llistxattr", "flistxattr", "listxattrat",
		"removexattr", "lremovexattr", "fremovexattr", "removexattrat":
		return ListAttr
	case "getdents64", "getdents":
		return Entries
	case "open", "openat", "openat2", "creat", "open_tree", "open_by_handle_at":
		return Open
	case "stat", "lstat", "fstat", "newfstatat", "statx":
		return Stat
	}
	return Other
}

// OK reports whether the call succeeded.
func (c Call) OK() bool { return c.Ret != "" && c.Ret != "?" && !strings.HasPrefix(c.Ret, "-1 ") }

// pathAt tells which argument of a call is a path.
var pathAt = map[string]int{
	"open": 0, "creat": 0, "openat": 1, "openat2": 1, "open_tree": 1,
	"getxattr": 0, "lgetxattr": 0, "setxattr": 0, "lsetxattr": 0, "listxattr": 0, "llistxattr": 0,
	"removexattr": 0, "lremovexattr": 0,
	"setxattrat": 1, "getxattrat": 1, "listxattrat": 1, "removexattrat": 1, "file_getattr": 1, "file_setattr": 1,
	"stat": 0, "lstat": 0, "newfstatat": 1, "statx": 1, "statfs": 0, "access": 0, "faccessat": 1, "faccessat2": 1,
	"readlink": 0, "readlinkat": 1, "name_to_handle_at": 1, "chdir": 0, "chroot": 0,
	"mkdir": 0, "mkdirat": 1, "mknodat": 1, "unlink": 0, "unlinkat": 1, "rmdir": 0, "rename": 0, "renameat2": 1,
	"linkat": 1, "chmod": 0, "fchmodat": 1, "chown": 0, "lchown": 0, "fchownat": 1, "utimensat": 1,
	"mount": 1, "umount2": 0, "mount_setattr": 1, "open_tree_attr": 1, "execve": 0, "inotify_add_watch": 1,
}

// Path is the path, or the first of two, that the call takes. ok is false if
// it takes none, or strace shows only its address.
func (c Call) Path() (path string, ok bool) {
	i, ok := pathAt[c.Name]
	if !ok || i >= len(c.Args) {
		return "", false
	}
	path, err := strconv.Unquote(strings.TrimSuffix(c.Args[i], "...")) // dots: it was cut
	return path, err == nil
}

// Flags is the text of the flags of an open, such as "O_RDONLY|O_DIRECTORY";
// of openat2 it is the whole structure.
func (c Call) Flags() string {
	if i, ok := pathAt[c.Name]; ok && c.Class() == Open && i+1 < len(c.Args) {
		return c.Args[i+1]
	}
	return ""
}

// Select gives the calls that test accepts, in order.
func Select(calls []Call, test func(Call) bool) []Call {
	var out []Call
	for _, c := range calls {
		if test(c) {
			out = append(out, c)
		}
	}
	return out
}

// After gives the calls after the first successful open of path; none if
// there is no such open.
func After(calls []Call, path string) []Call {
	for i, c := range calls {
		if p, ok := c.Path(); ok && p == path && c.Class() == Open && c.OK() {
			return calls[i+1:]
		}
	}
	return nil
}

// Tallies counts the calls of each class.
func Tallies(calls []Call) map[Class]int {
	n := map[Class]int{}
	for _, c := range calls {
		n[c.Class()]++
	}
	return n
}
