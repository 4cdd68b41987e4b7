// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// hang is one call that does not come back.
type hang struct {
	call, name string // of FUSE, on entries of that name
	nth        int    // from which such call on
	path       string // beneath the root; "." for the root
	says       string // the system calls that may make it, as a message names them
	rest       string // "all": everything else can be done, but for a few names behind it
}

func (h hang) String() string { return fmt.Sprintf("%s %s #%d", h.call, h.name, h.nth) }

// hangs are the calls of a run, as they come: those on the root before the
// walk, those of the walk, and those on the root after it.
var hangs = []hang{
	{"lookup", "tree", 1, ".", "openat statx open stat lstat", ""},
	{"getattr", "tree", 1, ".", "statx stat lstat", ""},
	{"opendir", "tree", 1, ".", "openat", ""},
	{"getxattr", "tree", 1, ".", "fgetxattr getxattr", ""},
	{"setxattr", "tree", 1, ".", "fsetxattr", ""}, // the claim
	{"setxattr", "tree", 2, ".", "fsetxattr", ""}, // the seal
	{"fsync", "tree", 1, ".", "fsync", ""},
	{"readdir", "tree", 1, ".", "getdents64", ""},
	{"lookup", "f23", 1, "d2/f23", "getxattrat setxattrat getxattr setxattr openat openat2", "all"},
	{"getxattr", "f23", 1, "d2/f23", "getxattrat getxattr lgetxattr", "all"},
	{"setxattr", "f23", 1, "d2/f23", "setxattrat setxattr lsetxattr", "all"},
	{"setxattr", "r05", 1, "r05", "setxattrat setxattr lsetxattr", "all"},
	{"setxattr", "l3", 1, "d3/l3", "setxattrat setxattr lsetxattr", "all"},
	{"lookup", "d2", 1, "d2", "openat openat2", "all"},
	{"opendir", "d2", 1, "d2", "openat openat2", "all"},
	{"getxattr", "d2", 1, "d2", "fgetxattr", "all"},
	{"setxattr", "d2", 1, "d2", "fsetxattr", "all"},
	{"readdir", "d2", 1, "d2", "getdents64", "all"},
	{"setxattr", "tree", 3, ".", "fsetxattr", "all"},
	{"fsync", "tree", 2, ".", "fsync", "all"},
	{"opendir", "tree", 2, ".", "openat", "all"},
	{"readdir", "tree", 3, ".", "getdents64", "all"},
}

// ending is how a run is made to end.
type ending struct {
	how    string
	signal os.Signal // nil: --timeout
	code   int
}

var endings = []ending{
	{"--timeout", nil, 124},
	{"SIGINT", os.Interrupt, 130},
	{"SIGTERM", syscall.SIGTERM, 143},
}

const hungTimeout = 2 * time.Second

// hungCell is one run beside one hang, and what was wrong with it.
type hungCell struct {
	hang
	ending
	server  string // deaf, or heeds interrupts
	threads int
	json    bool
	wrong   map[string]string
	took    time.Duration // from what ends the run to its end
}

// The servers: a call that hangs can be ended by a signal, or by nothing.
const (
	heeds = "heeds"
	deaf  = "deaf"
)

// TestHung runs the command on a filesystem in which one call never comes
// back (R6).
func TestHung(t *testing.T) {
	treetest.Need(t, "root", "fuse", "tmpfs")
	bin := fastlabel(t)
	var cells []*hungCell
	for i, h := range hangs {
		for j, e := range endings {
			for k, server := range []string{deaf, heeds} {
				if pick(true, false, false) && (j+k+i%2)%3 == 2 {
					continue // two of the three endings for each call
				}
				for _, threads := range pick([]int{4}, []int{2, 4}, []int{2, 3, 4, 8}) {
					cells = append(cells, &hungCell{
						hang: h, ending: e, server: server, threads: threads, json: len(cells)%2 == 0, wrong: map[string]string{},
					})
				}
			}
		}
	}
	atOnce(12, len(cells), func(i int) { cells[i].run(t, bin) })
	fell, ran := hungControls(t)

	r := row{
		check: "R6 a call that hangs: the run ends with its code, names path and call, and has done the rest", where: "FUSE", runs: len(cells),
		control: "go-selinux, chcon -R under timeout 1", controlRuns: ran, controlBad: fell,
	}
	longest := time.Duration(0)
	for _, c := range cells {
		longest = max(longest, c.took)
		if len(c.wrong) > 0 {
			r.bad++
			t.Logf("%v, %s, %s, %d threads: %v", c.hang, c.server, c.how, c.threads, c.wrong)
		}
	}
	r.note = fmt.Sprintf("%d kinds of calls; the longest took %.1f s to end", len(hangs), longest.Seconds())
	r.add(t)
}

// atOnce calls do for 0 to n-1, some at once.
func atOnce(some, n int, do func(i int)) {
	slots := make(chan struct{}, some)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	all.Wait()
}

// hungTree builds a tree in the directory that m shows.
func hungTree(t testing.TB, m *fuseMount) string {
	text := "default label=" + oldLabel + "\ndir .\nfile r%02d x12\n"
	for i := range 6 {
		text += strings.ReplaceAll("dir dN\nfile dN/fN%d x6\nlink dN/lN nowhere\nfile dN/e/g/h\n", "N", fmt.Sprint(i))
	}
	treetest.Build(t, filepath.Join(m.back, "tree"), treetest.Text(t, text))
	return filepath.Join(m.dir, "tree")
}

// healthy builds a small tree on tmpfs, to be done beside the hung one.
func healthy(t testing.TB) string {
	dir := filepath.Join(scratch(t), "healthy")
	treetest.Build(t, dir, treetest.Text(t, "default label="+oldLabel+"\ndir .\ndir d\nfile d/f%d x9\n"))
	return dir
}

// scratch makes a directory on tmpfs.
func scratch(t testing.TB) string {
	t.Helper()
	all := treetest.Filesystems(t)
	return all[len(all)-1].Dir(t)
}

// run runs the command until it is told to end. A busy machine may need more
// than hungTimeout to come to the call that hangs: then the run proves nothing,
// and another has four times as long.
func (c *hungCell) run(t testing.TB, bin string) {
	for timeout := hungTimeout; !c.within(t, bin, timeout); timeout *= 4 {
		if timeout > treetest.Patience {
			t.Errorf("%v: nothing hung, or the PATH before was not done, so nothing was shown", c.hang)
			return
		}
	}
}

// within is one run that --timeout, if it is what ends it, ends after timeout. It
// reports whether the call hung, and the PATH before it was done, in half of that.
func (c *hungCell) within(t testing.TB, bin string, timeout time.Duration) bool {
	m := mountFUSE(t)
	defer m.end(t)
	root := hungTree(t, m)
	before, after := healthy(t), healthy(t)
	m.ask(t, "hang %s %s %d %s", c.call, c.name, c.nth, c.server)

	args := []string{"-T", fmt.Sprint(c.threads), "--label", newLabel, before, root, after}
	if c.call == "getxattr" { // or labels are written unread after a while
		args = append([]string{"--exact"}, args...)
	}
	if c.json {
		args = append([]string{"--json"}, args...)
	}
	if c.signal == nil {
		args = append([]string{"--timeout", timeout.String()}, args...)
	}
	cmd := exec.Command(bin, args...)
	out := collect(t, cmd)
	told := time.Now().Add(timeout)
	treetest.Check(t, cmd.Start())
	waited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(waited) }()
	ready := func() bool { return m.ask(t, "held") != "" && differing(t, before, newLabel) == 0 }
	if c.signal != nil {
		treetest.Wait(t, "a call to hang and the PATH before to be done", ready)
		time.Sleep(1500 * time.Millisecond) // a blocked worker is replaced after half a second
		told = time.Now()
		treetest.Check(t, cmd.Process.Signal(c.signal))
	} else {
		for ; !ready(); time.Sleep(time.Millisecond) {
			if time.Until(told) < timeout/2 {
				m.end(t)
				_ = cmd.Process.Kill()
				<-waited
				return false
			}
		}
	}
	select {
	case <-waited:
		if c.took = time.Since(told); c.took < 0 {
			c.wrong["end"] = fmt.Sprintf("%v too early: %s", -c.took, out())
		}
	case <-time.After(time.Until(told.Add(treetest.Patience))):
		c.wrong["end"] = "still there"
	}
	text := out() // what a caller has by now
	c.judge(t, text, root, m, before)
	m.end(t)
	select {
	case <-waited:
	case <-time.After(treetest.Patience):
		_ = cmd.Process.Kill()
		<-waited
	}
	if code := cmd.ProcessState.ExitCode(); code != c.code {
		c.wrong["code"] = fmt.Sprintf("%d, want %d", code, c.code)
	}
	return true
}

// collect gathers what cmd prints, and gives what came so far, without waiting
// for its end.
func collect(t testing.TB, cmd *exec.Cmd) func() string {
	t.Helper()
	out, err := os.Create(filepath.Join(scratch(t), "out"))
	treetest.Must(t, err)
	t.Cleanup(func() { treetest.Check(t, out.Close()) })
	cmd.Stdout, cmd.Stderr = out, out
	return func() string {
		text, err := os.ReadFile(out.Name())
		treetest.Check(t, err)
		return string(text)
	}
}
