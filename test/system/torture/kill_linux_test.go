// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// writes are the calls that can change a label on disk, and those that put it
// there; reads are those that read one.
var (
	writes = []int{
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_SYNCFS, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
	}
	reads = []int{unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_FGETXATTR, unix.SYS_GETXATTRAT}
)

// patient are trees of a few hundred entries that are relabelled many times.
var patient = []struct{ name, fs, text string }{
	{"mixed", "tmpfs", `default label=` + oldLabel + `
dir a
dir a/b
dir a/b/c
file f%02d x20
file a/f%02d x20
file a/b/c/f%02d x40
link a/l ../f01
fifo a/b/p
hardlink a/b/h f02
dir d%02d x20
file d03/f%02d x20
`},
	{"deep", "ext4", "default label=" + oldLabel + "\ndeep d x100 12\nfile z%02d x5\n"},
	{"flat", "xfs", "default label=" + oldLabel + "\nfile f%03d x250\n"},
}

// subject is a tree whose labels can be put back, and what the command is to make of it.
type subject struct {
	root  string
	paths []string
	args  []string                 // by which it is told
	want  func(path string) string // the label of an entry then

	byRules bool // so that the root is trusted for nothing
}

func plant(t *testing.T, fs, text string) subject {
	t.Helper()
	s := subject{
		root: filepath.Join(treetest.Fresh(t, fs), "volume"),
		args: []string{"--label", newLabel}, want: func(string) string { return newLabel },
	}
	treetest.Build(t, s.root, treetest.Text(t, text))
	for p := range treetest.List(t, s.root) {
		s.paths = append(s.paths, filepath.Join(s.root, p))
	}
	return s
}

// paint gives every entry the label.
func (s subject) paint(t testing.TB, label string) {
	t.Helper()
	for _, p := range s.paths {
		if err := unix.Lsetxattr(p, "security.selinux", []byte(label), 0); err != nil {
			t.Fatal(p, err)
		}
	}
}

// wrong counts the entries that do not have the label that they are to have.
func (s subject) wrong(t testing.TB) (n int) {
	t.Helper()
	for _, p := range s.paths {
		if read(t, p) != s.want(p) {
			n++
		}
	}
	return n
}

// bearing counts the entries with each label.
func (s subject) bearing(t testing.TB) map[string]int {
	t.Helper()
	n := map[string]int{}
	for _, p := range s.paths {
		n[read(t, p)]++
	}
	return n
}

// read reads the label of an entry, without the NUL that SELinux adds where it is on.
func read(t testing.TB, path string) string {
	t.Helper()
	buf := make([]byte, 256)
	n, err := unix.Lgetxattr(path, "security.selinux", buf)
	if err == unix.ENODATA {
		return ""
	}
	if err != nil {
		t.Fatal(path, err)
	}
	return strings.TrimSuffix(string(buf[:n]), "\x00")
}

// lies reports whether the root is trusted for a label that not every entry has.
func (s subject) lies(t testing.TB) bool {
	t.Helper()
	root := read(t, s.root)
	return (root == oldLabel || root == newLabel) && s.bearing(t)[root] != len(s.paths)
}

// TestKill kills the command before each call N that reads or writes a label
// or waits for the disk (R1). Whatever N: the root is trusted neither for the new
// nor for the old label unless every entry has it, the command's own probe
// says the same, and the next run completes, be it to the new label or back to
// the old one.
func TestKill(t *testing.T) {
	for _, p := range patient {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := plant(t, p.fs, p.text)
			for _, threads := range []int{1, 2, 8} {
				r := row{check: "R1 kill -9 before call N", where: fmt.Sprintf("%s, %s, -T %d", p.name, p.fs, threads)}
				s.kill(t, threads, r)
			}
		})
	}
}

// kill runs one cell.
func (s subject) kill(t *testing.T, threads int, r row) {
	t.Helper()
	points := pick(40, 1150, 6000) // of each of nine cells
	// Every call of a run is a point; more points than calls are other
	// interleavings of the same calls.
	calls := s.killed(t, s.quiet(t, threads), 0).Calls
	step := float64(max(calls, points)) / float64(points)
	for i := range points {
		n := 1 + int(float64(i)*step)%calls
		r.runs++
		if !s.survives(t, threads, n, i) {
			r.bad++
		}
	}
	r.control, r.controlRuns = "go-selinux, same points", min(points, 20)
	for i := range r.controlRuns {
		s.paint(t, oldLabel)
		s.killed(t, gochcon(newLabel, s.root), 1+i*len(s.paths)/r.controlRuns)
		if s.lies(t) {
			r.controlBad++
		}
	}
	r.note = fmt.Sprintf("%d calls a run", calls)
	r.add(t)
}

// command is the command at work on the tree.
func (s subject) command(t testing.TB, flags ...string) *exec.Cmd {
	t.Helper()
	return exec.Command(fastlabel(t), slices.Concat(s.args, flags, []string{s.root})...)
}

func (s subject) quiet(t testing.TB, threads int) *exec.Cmd {
	t.Helper()
	return s.command(t, "-q", "-T", strconv.Itoa(threads))
}

// killed runs cmd until its call n, which is its last; 0 lets it end.
func (s subject) killed(t testing.TB, cmd *exec.Cmd, n int) treetest.Ended {
	t.Helper()
	calls := append(append([]int(nil), writes...), reads...)
	return treetest.Supervise(t, cmd, calls, func(c treetest.Notice) treetest.Answer {
		return treetest.Answer{Kill: c.Nth == n}
	})
}

// survives is one point.
func (s subject) survives(t *testing.T, threads, n, i int) bool {
	t.Helper()
	s.paint(t, oldLabel)
	s.killed(t, s.quiet(t, threads), n)
	if s.lies(t) {
		t.Errorf("killed before call %d: the root says %s of %v", n, read(t, s.root), s.bearing(t))
		return false
	}
	if i%16 == 0 && !s.probed(t) {
		return false
	}
	next := newLabel
	if i%pick(8, 2, 2) == 1 { // it finds the claim of the one killed, and waits a second
		next = oldLabel
	}
	again := exec.Command(fastlabel(t), "-q", "--label", next, s.root)
	if i%3 == 0 {
		again.Args = append(again.Args, "--skip", "root")
	}
	out, err := again.CombinedOutput()
	if got := s.bearing(t); err != nil || got[next] != len(s.paths) {
		t.Errorf("the run to %s after one killed before call %d: %v, %v\n%s", next, n, err, got, out)
		return false
	}
	return true
}

// fresh gives every entry the old label, and takes off the claim that a run has left.
func (s subject) fresh(t testing.TB) {
	t.Helper()
	s.paint(t, oldLabel)
	if err := unix.Removexattr(s.root, "trusted.fastlabel.seal"); err != nil && !errors.Is(err, unix.ENODATA) {
		t.Fatal(err)
	}
}

// claimed reports whether a run has left its claim, beside which no label is trusted.
func claimed(root string) bool {
	_, err := unix.Getxattr(root, "trusted.fastlabel.seal", nil)
	return err == nil
}

// probed asks the command what it takes the volume for: for nothing while a claim is left.
func (s subject) probed(t *testing.T) bool {
	t.Helper()
	left := claimed(s.root)
	for _, label := range []string{oldLabel, s.want(s.root)} {
		want := 4
		if !left && s.bearing(t)[label] == len(s.paths) {
			want = 0
		}
		if got := exitCode(t, exec.Command(fastlabel(t), "probe", "-q", "--label", label, s.root)); got != want {
			t.Errorf("probe for %s: exit %d of %v", label, got, s.bearing(t))
			return false
		}
	}
	return true
}
