// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestUndoKill kills the command before each call N with which it reads or writes
// a label, or writes its record or waits for it to be on disk: whatever N, the
// record gives back exactly what was. Then it kills restore the same way: the
// next restore ends it.
func TestUndoKill(t *testing.T) {
	for _, p := range patient {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := plant(t, "ext4", p.text)
			for _, threads := range []int{1, 4} {
				s.undo(t, threads, pick(40, 400, 2000), row{check: "R1 kill -9 before call N, then restore", where: fmt.Sprintf("%s, ext4, -T %d", p.name, threads)})
			}
		})
	}
}

// former are labels as they may have been, the same for names of one file: one in
// eleven files has none, but where SELinux is on.
func (s subject) former(t testing.TB, path string) string {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	if !treetest.Policed() && st.Ino%11 == 7 {
		return ""
	}
	return fmt.Sprintf("system_u:object_r:%s_t:s0", []string{"etc", "usr", "var", "bin", "lib"}[st.Ino%5])
}

func (s subject) paintFormer(t testing.TB) {
	t.Helper()
	for _, p := range s.paths {
		var err error
		if l := s.former(t, p); l != "" {
			err = unix.Lsetxattr(p, "security.selinux", []byte(l), 0)
		} else if err = unix.Lremovexattr(p, "security.selinux"); err == unix.ENODATA {
			err = nil
		}
		if err != nil {
			t.Fatal(p, err)
		}
	}
}

// paintWanted gives every entry the label that a run gives it.
func (s subject) paintWanted(t testing.TB) {
	t.Helper()
	for _, p := range s.paths {
		if err := unix.Lsetxattr(p, "security.selinux", []byte(s.want(p)), 0); err != nil {
			t.Fatal(p, err)
		}
	}
}

// astray counts the entries that do not have what they had.
func (s subject) astray(t testing.TB) (n int) {
	t.Helper()
	for _, p := range s.paths {
		if read(t, p) != s.former(t, p) {
			n++
		}
	}
	return n
}

// undo runs one cell, of so many points each.
func (s subject) undo(t *testing.T, threads, points int, r row) {
	t.Helper()
	file := filepath.Join(filepath.Dir(s.root), "record")
	label := func() *exec.Cmd {
		_ = os.Remove(file) // there may be none
		return s.command(t, "-q", "-T", strconv.Itoa(threads), "--record", file)
	}
	restore := func() *exec.Cmd {
		return exec.Command(fastlabel(t), "restore", "-q", "-T", strconv.Itoa(threads), "--partial", file)
	}
	calls := append(append([]int{unix.SYS_PWRITE64, unix.SYS_FTRUNCATE, unix.SYS_REMOVEXATTR}, writes...), reads...)
	killed := func(cmd *exec.Cmd, n int) int {
		return treetest.Supervise(t, cmd, calls, func(c treetest.Notice) treetest.Answer { return treetest.Answer{Kill: c.Nth == n} }).Calls
	}
	check := func(what string, n int) {
		r.runs++
		out, err := restore().CombinedOutput()
		if lost := s.astray(t); lost > 0 {
			r.bad++
			t.Errorf("%s killed before call %d: %d entries do not have what they had: %v\n%s", what, n, lost, err, out)
		}
	}
	s.paintFormer(t)
	all := killed(label(), 0)
	if s.wrong(t) > 0 {
		t.Fatalf("%v after a run of %d calls", s.bearing(t), all)
	}
	for i := range points {
		s.paintFormer(t)
		n := 1 + i*all/points
		killed(label(), n)
		check("the run", n)
	}
	s.paintFormer(t)
	if out, err := label().CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.paintWanted(t)
	back := killed(restore(), 0)
	for i := range points {
		s.paintWanted(t)
		n := 1 + i*back/points
		killed(restore(), n)
		check("restore", n)
	}
	// The control: a record that is cut short by more than the frame at hand.
	s.paintFormer(t)
	if out, err := label().CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if info, err := os.Stat(file); err != nil || os.Truncate(file, info.Size()/2) != nil {
		t.Fatal(err)
	}
	r.control, r.controlRuns = "half of a record", 1
	if _, err := restore().CombinedOutput(); err != nil || s.astray(t) > 0 {
		r.controlBad = 1
	}
	if !s.byRules && read(t, s.root) == s.former(t, s.root) { // else it comes first
		t.Errorf("with half of a record the root has what it had, and %d entries do not", s.astray(t))
	}
	r.note = fmt.Sprintf("%d calls a run, %d a restore", all, back)
	r.add(t)
}
