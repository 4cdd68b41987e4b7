// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// answered is what the command made of a tree of thirteen files in three levels,
// one worker, when a call failed.
type answered struct {
	summary
	Seen     int64 `json:"seen"`
	Vanished int64 `json:"vanished"`
	Skipped  int64 `json:"skipped"`
	Code     int   `json:"exit_code"`

	right int // entries that have the label afterwards
}

// answer runs the command on a fresh tree, where the calls nr that when picks
// out, by how many there were of them, fail with e.
func answer(t *testing.T, bin string, deny map[int]syscall.Errno, nr int, e syscall.Errno, when func(n int) bool) (a answered) {
	t.Helper()
	root := filepath.Join(on(t, "tmpfs"), "tree")
	treetest.Build(t, root, treetest.Text(t, "default label="+oldLabel+"\nfile a%d x6\ndir d\nfile d/b%d x6\ndir d/e\nfile d/e/c\n"))
	ahead := time.Now().Add(time.Hour)
	treetest.Must(t, os.Chtimes(root, ahead, ahead)) // then its own entries are read a second time
	cmd := exec.Command(bin, "--json", "-T", "1", "--label", newLabel, root)
	if deny != nil {
		treetest.Deny(t, cmd, deny)
	}
	end := treetest.Supervise(t, cmd, []int{nr}, func(n treetest.Notice) treetest.Answer {
		if when(n.Same) {
			return treetest.Answer{Errno: e}
		}
		return treetest.Answer{}
	})
	lines := strings.Split(strings.TrimSpace(end.Stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &a); err != nil || a.Type != "summary" || a.Code != end.Code {
		t.Fatalf("%v: %+v", err, end)
	}
	a.right = len(bearing(t, root, newLabel))
	return a
}

// ask is a case of a row: which calls fail, and what must become of it.
type ask struct {
	nr   int
	when func(n int) bool
	deny map[int]syscall.Errno
	says string
	want func(a answered) bool
}

func once(at int) func(int) bool { return func(n int) bool { return n == at } }
func from(at int) func(int) bool { return func(n int) bool { return n >= at } }

// TestErrnoTable: each row of the table, on a call that such an errno comes
// from. A row without a case here fails. What such errnos do at every call, by
// every way, is TestErrnos of test/system/torture.
func TestErrnoTable(t *testing.T) {
	treetest.Need(t, "root", "seccomp", "setxattrat", "tmpfs")
	const all, write = 16, unix.SYS_SETXATTRAT
	done := func(a answered) bool { return a.Code == 0 && a.Complete && a.right == all }
	oneFailed := func(a answered) bool { return a.Code == 1 && a.Failed == 1 && !a.Complete && a.right == all-2 }
	vanished := func(a answered) bool { return a.Code == 0 && a.Vanished == 1 }
	allFailed := func(a answered) bool { return a.Code == 1 && a.Failed == 13 && a.right == 2 }
	stopped := func(a answered) bool { return a.Code == 1 && a.Failed == 1 && a.right == 0 }
	noClone := map[int]syscall.Errno{unix.SYS_OPEN_TREE: syscall.EPERM}
	// The first setxattrat asks the kernel whether there is one.
	second := ask{write, once(3), nil, "done at the second try", done}
	never := ask{write, from(2), nil, "each fails in the end", allFailed}
	fails := ask{write, once(3), nil, "one failure, the rest done, no commit", oneFailed}
	noReads := map[int]syscall.Errno{unix.SYS_GETXATTRAT: syscall.ENOSYS, unix.SYS_SETXATTRAT: syscall.ENOSYS, unix.SYS_LGETXATTR: syscall.ENOTSUP}
	skipped := func(a answered) bool { return a.Code == 0 && a.Complete && a.Skipped == 13 && a.right == 3 }
	readAlone := func(a answered) bool { return a.Code == 1 && !a.Complete }
	cases := map[sys.Errno][]ask{
		syscall.ENOENT: {{write, once(3), nil, "vanished", vanished}},
		syscall.ESTALE: {second, never},
		syscall.ENOMEM: {second, never},
		syscall.EMFILE: []ask{second, never}[:sized(2, 1)], // as ENOMEM does, with the same pauses
		syscall.ENFILE: []ask{second, never}[:sized(2, 1)],
		syscall.EROFS:  {fails},
		syscall.EPERM:  {fails},
		syscall.EACCES: {fails},
		syscall.ENOSPC: {fails},
		syscall.EDQUOT: {fails},
		syscall.ENOTSUP: {
			fails,
			{write, from(2), nil, "each fails: they have a label", allFailed},
			{unix.SYS_LSETXATTR, from(1), noReads, "each is skipped: they can have none", skipped},
			{unix.SYS_GETXATTRAT, from(2), nil, "failures: they can be written", readAlone},
		},
		syscall.ENOKEY: {fails},
		syscall.EIO:    {fails, never},
		syscall.EINVAL: {{write, from(2), nil, "the first ends the run", stopped}},
	}
	bin := treetest.Command(t)
	// Which openat2 opens d depends on the order of the directory's records:
	// the last one that is made of the root's entries.
	for _, e := range []sys.Errno{syscall.ELOOP, syscall.ENOTDIR, syscall.EXDEV} {
		for at := 2; at < 28; at += sized(1, 3) {
			cases[e] = append(cases[e], ask{unix.SYS_OPENAT2, once(at), noClone, "done at the second try, or one failure", func(a answered) bool { return done(a) || a.Code == 1 && a.Failed == 1 && !a.Complete }})
		}
		cases[e] = append(cases[e], ask{unix.SYS_OPENAT2, from(2), noClone, "no silence", func(a answered) bool { return a.Code == 1 && a.Failed > 0 }})
	}
	cases[syscall.EXDEV] = append(cases[syscall.EXDEV], second, never) // in a clone, where nothing is mounted
	for _, row := range xattrio.Verdicts {
		if len(cases[row.Errno]) == 0 {
			t.Errorf("%s has no case", unix.ErrnoName(row.Errno))
		}
		t.Run(unix.ErrnoName(row.Errno), func(t *testing.T) {
			t.Parallel() // some pause before they try again
			for _, c := range cases[row.Errno] {
				if a := answer(t, bin, c.deny, c.nr, row.Errno, c.when); !c.want(a) {
					t.Errorf("want %s: %+v", c.says, a)
				}
			}
		})
	}
}
