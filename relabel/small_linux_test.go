// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestSmallTurnsLarge: wherever a tree turns out to be large, each entry is labelled and
// reported once, and the second run finds all of it right.
func TestSmallTurnsLarge(t *testing.T) {
	treetest.Need(t, "root")
	deep := "dir " + strings.Repeat("d/", 40) + "d\n"
	for name, text := range map[string]string{
		"empty":           "dir .\n",
		"one":             "file f\n",
		"just small":      "file f%d x511\n",
		"just large":      "file f%d x513\n",
		"in directories":  "dir d%d x40\nfile d3/f%d x400\nfile d7/f%d x200\nfile f%d x30\n",
		"deep":            deep + "file d/f%d x600\nfile " + strings.Repeat("d/", 41) + "f%d x20\n",
		"full buffer":     "dir d\nfile d/f%0200d x300\nfile f%d x3\n",
		"full buffer top": "dir d\nfile f%0200d x300\nfile d/f%d x3\n",
		"mount":           "dir d\nfile d/f%d x5\nmount d/m tmpfs\nfile d/m/f%d x5\ndir e\nfile e/f%d x5\n",
		"file mount":      "dir d\nfile d/f%d x5\nfile note\nmount d/f3 bind note\nfile g%d x5\n",
	} {
		for engine, m := range engines() {
			if !m.small {
				continue
			}
			root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\n"+text)
			all := int64(len(treetest.Read(t, root)))
			wrong := all - int64(strings.Count(text, "bind")) // one file by two names
			told := map[string]int{}
			tell := &Trace{Change: func(path, _, _ string) { told[path]++ }}
			for _, turn := range []struct {
				label string
				trace *Trace
				wrote int64
			}{{newLabel, tell, wrong}, {newLabel, nil, 0}, {oldLabel, nil, wrong}} {
				r, err := tree(t.Context(), root, turn.label, Options{Trace: turn.trace}, as(m))
				adds(t, r)
				if err != nil || !r.Complete || r.Seen != all || r.Written != turn.wrote || len(bearing(t, root, turn.label)) != int(all) {
					t.Errorf("%s, %s, %+v: %d entries: %+v, %v", name, engine, turn, all, r, err)
				}
			}
			for path, n := range told {
				if n != 1 {
					t.Errorf("%s, %s: %s is reported %d times", name, engine, path, n)
				}
			}
		}
	}
}

// TestRightLooksAgain: a small tree that is right is done without a lock only if it could be
// read, and its root has the label after that too.
func TestRightLooksAgain(t *testing.T) {
	treetest.Need(t, "root", "seccomp", "tmpfs", "setxattrat") // before Linux 6.8 no tree is small
	for what, c := range map[string]struct {
		beneath string
		meets   func(root string) treetest.Answer
	}{
		"another run": {newLabel, func(root string) treetest.Answer {
			treetest.Set(t, root, ".", oldLabel) // or its seal
			return treetest.Answer{}
		}},
		"unread": {oldLabel, func(string) treetest.Answer { return treetest.Answer{Errno: unix.EIO} }},
	} {
		root := grow(t, on(t, "tmpfs"), "default label="+c.beneath+"\ndir .\nfile f%d x5\n")
		treetest.Set(t, root, ".", newLabel)
		first := true
		end := treetest.Supervise(t, exec.Command(treetest.Command(t), "--label", newLabel, root), []int{unix.SYS_GETDENTS64}, func(n treetest.Notice) treetest.Answer {
			if !first || !n.On(t, root) {
				return treetest.Answer{}
			}
			first = false
			return c.meets(root)
		})
		if has := len(bearing(t, root, newLabel)); end.Code != 0 || first || has != 6 {
			t.Errorf("%s: %d of 6 have the label: %+v", what, has, end)
		}
	}
}

// TestRightCancelled: one that is cancelled while it is read is not right, wherever that is.
func TestRightCancelled(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), "default label="+newLabel+"\ndir .\nfile f%03d x400\n")
	wrong := filepath.Join(root, "f000") // tmpfs lists the newest first
	stopped := 0
	for i := 0; i < 2000; i += sized(1, 7) {
		treetest.Set(t, root, "f000", oldLabel)
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
		r, err := Tree(ctx, root, newLabel, nil)
		if err == nil && (!r.Complete || labelOf(t, wrong) != newLabel) {
			t.Fatalf("after %d µs it is done, and is not: %+v", i, r)
		}
		if err != nil {
			stopped++
		}
		timer.Stop()
		cancel()
	}
	if stopped == 0 {
		t.Error("it was never stopped: that shows nothing")
	}
}

// TestSmallMounted: a mount that is made over a file while a small tree is read is not missed.
func TestSmallMounted(t *testing.T) {
	treetest.Need(t, "root", "seccomp", "tmpfs")
	root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir a\ndir b\nfile f\nfile right\n")
	treetest.Set(t, root, "right", newLabel)
	reads := 0
	end := treetest.Supervise(t, exec.Command(treetest.Command(t), "--label", newLabel, root), []int{unix.SYS_GETDENTS64}, func(n treetest.Notice) treetest.Answer {
		if n.On(t, root) {
			if reads++; reads == 3 {
				treetest.Check(t, unix.Mount(root+"/right", root+"/f", "", unix.MS_BIND, ""))
			}
		}
		return treetest.Answer{}
	})
	if reads < 3 || end.Code == 0 && len(bearing(t, root, newLabel)) != 5 { // what is covered is not in the tree
		t.Errorf("done, and not all has the label: %+v", end)
	}
	treetest.Check(t, unix.Unmount(root+"/f", unix.MNT_DETACH))
}
