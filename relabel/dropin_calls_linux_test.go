// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/selinux/go-selinux"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/policy"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// dropinCosts are calls of the drop-in and the most that each may cost, which is what it costs
// today; and controls, whose calls the trace has to tell.
var dropinCosts = []struct {
	name, text       string
	wrong            bool
	call             func(path, label string) error // nil: Chcon
	tmpfs, ext4, xfs int                            // system calls
	allocs           float64                        // with those of the race detector: one, and eight of a wrong volume
	control          string
}{
	{name: "file", text: "file f", tmpfs: 10, ext4: 10, xfs: 10, allocs: 43},
	{name: "right 0", tmpfs: 17, ext4: 17, xfs: 17, allocs: 65},
	{name: "right 1", text: "file f", tmpfs: 20, ext4: 20, xfs: 20, allocs: 65},
	{name: "right 10", text: "file f%d x10", tmpfs: 29, ext4: 29, xfs: 29, allocs: 65},
	{name: "wrong 0", wrong: true, tmpfs: 38, ext4: 41, xfs: 38, allocs: 155},
	{name: "wrong 1", text: "file f", wrong: true, tmpfs: 42, ext4: 45, xfs: 42, allocs: 155},
	{name: "wrong 10", text: "file f%d x10", wrong: true, tmpfs: 72, ext4: 75, xfs: 72, allocs: 155},
	{name: "synced", text: "file f", wrong: true, control: "a wait for the disk", call: func(path, label string) error {
		_, err := Tree(context.Background(), path, label, &Options{Sync: true})
		return err
	}},
	{name: "go-selinux", text: "file f%d x10", wrong: true, control: "17 calls", call: func(path, label string) error {
		return selinux.Chcon(path, label, true)
	}},
	{name: "mount", text: "dir m", wrong: true, control: "the table of mounts", call: func(path, label string) error { // the last
		return errors.Join(unix.Mount("none", filepath.Join(path, "m"), "tmpfs", 0, ""), Chcon(path, label, true))
	}},
}

// TestDropinCosts counts what a call of the drop-in costs, in a process that has made one:
// system calls and allocations. No disk is waited for, no table of mounts is read, and
// a volume that is right, or a file, is not locked. The refused places are looked at once.
func TestDropinCosts(t *testing.T) {
	// The least of so many turns counts: a busy machine has some take so long that the refused
	// places are looked at again, or the tree seems large.
	const env, turns = "FASTLABEL_DROPIN_COSTS", 20
	calls := func(dir string, i int) func() {
		c, path, turn := dropinCosts[i], filepath.Join(dir, dropinCosts[i].name), 0
		if c.name == "file" {
			path = filepath.Join(path, "f")
		}
		return func() {
			label := newLabel
			if turn++; c.wrong && turn%2 == 1 {
				label = oldLabel
			}
			var err error
			if c.call != nil {
				err = c.call(path, label)
			} else {
				err = Chcon(path, label, c.name != "file")
			}
			if err != nil {
				t.Fatal(c.name, err)
			}
		}
	}
	if dir := os.Getenv(env); dir != "" {
		for i, c := range dropinCosts {
			call := calls(dir, i)
			for range turns {
				_ = unix.Access(filepath.Join(dir, "begin", c.name), 0) // in the trace
				call()
			}
		}
		return
	}
	treetest.Need(t, "root", "strace", "setxattrat")
	for k, fs := range []string{"tmpfs", "ext4", "xfs"} {
		dir := treetest.Fresh(t, fs)
		for _, c := range dropinCosts {
			treetest.Build(t, filepath.Join(dir, c.name), treetest.Text(t, "default label="+newLabel+"\ndir .\n"+c.text+"\n"))
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestDropinCosts$")
		cmd.Env = append(os.Environ(), env+"="+dir)
		var begun string
		places, turnsOf := map[string]bool{}, map[string][]dropinTurn{}
		for _, c := range treetest.TraceCmd(t, cmd) {
			p, _ := c.Path()
			if d, name := filepath.Split(p); d == filepath.Join(dir, "begin")+"/" {
				begun = name
				turnsOf[begun] = append(turnsOf[begun], dropinTurn{calls: -1})
			}
			if begun == "" {
				continue
			}
			turn := &turnsOf[begun][len(turnsOf[begun])-1]
			turn.calls++
			turn.names = append(turn.names, c.Name)
			switch {
			case strings.HasPrefix(p, "/run/fastlabel"), strings.HasPrefix(c.Dir, "/run/fastlabel"):
				turn.said += "a lock, "
			case c.Name == "statx" && filepath.IsAbs(p) && !strings.HasPrefix(p, dir):
				places[p] = true
			case strings.Contains(c.Name, "sync"):
				turn.said += "a wait for the disk, "
			case (c.Name == "read" || c.Name == "pread64") && strings.HasSuffix(c.Dir, "/mountinfo"):
				turn.said += "the table of mounts, "
			}
		}
		if len(places) < 20 {
			t.Errorf("%s: only %d refused places are looked at", fs, len(places))
		}
		for i, c := range dropinCosts {
			// On a busy machine a turn may be late, and so its tree taken for a larger one.
			best := slices.MinFunc(turnsOf[c.name], func(a, b dropinTurn) int { return cmp.Compare(a.calls, b.calls) })
			said, allocs := fmt.Sprintf("%s%d calls", best.said, best.calls), math.Inf(1)
			if c.control != "" {
				if !strings.Contains(said, c.control) {
					t.Errorf("control: %s, %s: %s", fs, c.name, said)
				}
				continue
			}
			call := calls(dir, i)
			for range turns {
				allocs = min(allocs, testing.AllocsPerRun(1, call))
			}
			most := [...]int{c.tmpfs, c.ext4, c.xfs}[k]
			// The loaded policy is asked whether it knows the label, and the mount whether it has labels.
			if !policy.Off() && c.name != "file" {
				most, c.allocs = most+5+2, c.allocs+5
			}
			if best.calls > most || allocs > c.allocs || strings.Contains(said, "disk") || strings.Contains(said, "mounts") || strings.Contains(said, "lock") != c.wrong {
				t.Errorf("%s, %s: %s and %.0f allocations, want %d and %.0f at most: %s", fs, c.name, said, allocs, most, c.allocs, best.names)
			}
		}
	}
}

// dropinTurn is one call of a drop-in: how many system calls it made, and which it should not.
type dropinTurn struct {
	calls int
	names []string
	said  string
}
