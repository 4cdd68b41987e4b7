// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// errnos are those that a filesystem, a disk or a kernel answers at will.
var errnos = []syscall.Errno{
	unix.EIO, unix.ENOSPC, unix.EDQUOT, unix.EPERM, unix.EROFS, unix.ENOTSUP, unix.ENOMEM,
	unix.EINTR, unix.ESTALE, unix.ELOOP, unix.ENOTDIR, unix.EMFILE, unix.EINVAL, unix.ENOSYS,
}

// fallible are the calls that the command makes of files.
var fallible = map[int]string{
	unix.SYS_SETXATTRAT: "setxattrat", unix.SYS_GETXATTRAT: "getxattrat",
	unix.SYS_SETXATTR: "setxattr", unix.SYS_GETXATTR: "getxattr",
	unix.SYS_LSETXATTR: "lsetxattr", unix.SYS_LGETXATTR: "lgetxattr",
	unix.SYS_FSETXATTR: "fsetxattr", unix.SYS_FGETXATTR: "fgetxattr",
	unix.SYS_OPENAT: "openat", unix.SYS_OPENAT2: "openat2", unix.SYS_GETDENTS64: "getdents64",
	unix.SYS_OPEN_TREE: "open_tree", unix.SYS_MOUNT_SETATTR: "mount_setattr",
	unix.SYS_STATX: "statx", unix.SYS_NEWFSTATAT: "newfstatat", unix.SYS_FSTAT: "fstat",
	unix.SYS_FSTATFS: "fstatfs", unix.SYS_STATFS: "statfs", unix.SYS_READLINKAT: "readlinkat",
	unix.SYS_NAME_TO_HANDLE_AT: "name_to_handle_at", unix.SYS_UNSHARE: "unshare", unix.SYS_FCHDIR: "fchdir",
	unix.SYS_SYNCFS: "syncfs", unix.SYS_FSYNC: "fsync", unix.SYS_FLOCK: "flock",
	unix.SYS_MKDIRAT: "mkdirat", unix.SYS_READ: "read", unix.SYS_CLOSE: "close",
}

// sick is a tree of every kind in which each call comes a few times.
const sick = `default label=` + oldLabel + `
dir a
dir a/b
dir c
file f%d x4
file a/f%d x4
file a/b/f%d x3
link a/l ../f1
fifo c/p
`

// fault is a cell of the sweep: call number Nth fails with errno, and with
// onward every later one too.
type fault struct {
	way    way
	nr     int
	errno  syscall.Errno
	nth    int
	onward bool
}

func (f fault) String() string {
	onward := ""
	if f.onward {
		onward = " and on"
	}
	return fmt.Sprintf("%s, %s %d%s: %s", f.way.name, fallible[f.nr], f.nth, onward, unix.ErrnoName(f.errno))
}

// decide leaves pipes alone, by which the command talks to a process of its own where
// the machine has a served filesystem mounted. Their calls do not fail, but for close,
// which closes the descriptor all the same, as a filter cannot: os/exec would wait for
// the end of its own pipe.
func (f fault) decide(n treetest.Notice) treetest.Answer {
	if n.Nr == unix.SYS_CLOSE || n.Nr == unix.SYS_READ {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.PID, int32(n.Args[0]))) // or it is not open
		if strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "socket:") {
			return treetest.Answer{}
		}
	}
	if n.Nr == f.nr && (n.Same == f.nth || f.onward && n.Same > f.nth) {
		return treetest.Answer{Errno: f.errno}
	}
	return treetest.Answer{}
}

// TestErrnos has each call fail at its Nth time with each errno (R3). Whatever
// fails: exit 0 means that every entry has the label, the counts add up,
// each failure is named, the root does not lie, and the next run completes.
func TestErrnos(t *testing.T) {
	for _, w := range ways {
		t.Run(strings.ReplaceAll(w.name, "/", "-"), func(t *testing.T) {
			t.Parallel()
			sweep(t, plant(t, "tmpfs", sick), w)
		})
	}
}

func sweep(t *testing.T, s subject, w way) {
	r := row{check: "R3 errno x call x Nth", where: w.name, control: "go-selinux, the same faults of its lsetxattr"}
	r.note = s.fails(t, w, pick(41, 1, 1), &r)
	for _, e := range errnos {
		for nth := 1; nth <= len(s.paths); nth++ {
			if e == unix.EINTR || pick(nth%4 != 0, false, false) {
				continue
			}
			r.controlRuns++
			s.paint(t, oldLabel)
			f := fault{nr: unix.SYS_LSETXATTR, errno: e, nth: nth}
			end := treetest.Supervise(t, gochcon(newLabel, s.root), []int{f.nr}, f.decide)
			if end.Code == 0 && s.bearing(t)[newLabel] != len(s.paths) {
				r.controlBad++
			}
		}
	}
	r.add(t)
}

// fails runs every so many of the cells, and says of how many calls they are.
func (s subject) fails(t *testing.T, w way, every int, r *row) string {
	t.Helper()
	seen := s.census(t, w)
	for _, f := range faults(w, seen, every) {
		r.runs++
		if what := s.stands(t, f); what != "" {
			r.bad++
			t.Errorf("%v: %s", f, what)
		}
	}
	return fmt.Sprintf("%d calls of %d kinds", total(seen), len(seen))
}

// census counts the calls of a run in which nothing fails.
func (s subject) census(t *testing.T, w way) map[int]int {
	t.Helper()
	s.paint(t, oldLabel)
	seen := map[int]int{}
	s.faulty(t, w, func(n treetest.Notice) treetest.Answer {
		seen[n.Nr]++
		return treetest.Answer{}
	})
	return seen
}

func total(n map[int]int) (sum int) {
	for _, v := range n {
		sum += v
	}
	return sum
}

// faults lists the cells for the calls that were seen, and for those up to
// three that only a fault leads to: every so many of them.
func faults(w way, seen map[int]int, every int) (all []fault) {
	for nr := range fallible {
		if w.deny[nr] != 0 {
			continue
		}
		for _, e := range errnos {
			for nth := 1; nth <= seen[nr]+1; nth++ {
				all = append(all, fault{w, nr, e, nth, false})
			}
			if e != unix.EINTR {
				all = append(all, fault{w, nr, e, 1, true}, fault{w, nr, e, seen[nr]/2 + 1, true})
			}
		}
	}
	slices.SortFunc(all, func(a, b fault) int { return strings.Compare(a.String(), b.String()) })
	var chosen []fault
	for i := 0; i < len(all); i += every {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// faulty runs the command with one worker, so that the Nth call is the same
// each time, and asks decide before each call.
func (s subject) faulty(t *testing.T, w way, decide func(treetest.Notice) treetest.Answer) treetest.Ended {
	t.Helper()
	var calls []int
	for nr := range fallible {
		if w.deny[nr] == 0 {
			calls = append(calls, nr)
		}
	}
	cmd := s.command(t, "--json", "-T", "1", "--timeout", "60s")
	return treetest.Supervise(t, w.on(t, cmd), calls, decide)
}

// stands runs one cell and says what it violated.
func (s subject) stands(t *testing.T, f fault) string {
	t.Helper()
	s.paint(t, oldLabel)
	end := s.faulty(t, f.way, f.decide)
	got := s.bearing(t)
	said := saying(end.Stdout)
	all := fmt.Sprintf("exit %d, labels %v, %+v\n%s", end.Code, got, said, end.Stderr)
	switch {
	case (end.Code == 2 || end.Code == 3) && strings.Contains(end.Stderr, "nothing was begun") && len(got) == 1 && got[oldLabel] > 0:
		return "" // the fault was met when PATH was looked up or rules were read, before anything was touched
	case !slices.Contains([]int{0, 1, 3}, end.Code):
		return "a crash, or past the deadline: " + all
	case end.Code == 0 && s.wrong(t) > 0:
		return "done with a wrong label left: " + all
	case end.Code == 0 && !said.Complete:
		return "done, but not complete: " + all
	case end.Code != 0 && said.named == 0:
		return "a failure without a name: " + all
	case said.wrong() != "":
		return said.wrong() + ": " + all
	case said.Failed > said.named:
		return "not every failure is named: " + all
	case !s.byRules && s.lies(t) && !said.unsealed:
		return "the root lies: " + all
	}
	if code := exitCode(t, s.command(t, "-q")); code != 0 || s.wrong(t) > 0 {
		return fmt.Sprintf("the next run: exit %d, %v", code, s.bearing(t))
	}
	return ""
}
