// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestChconCalls counts the system calls of Chcon of one file, in a process of its
// own: the refused places are looked at once, and nothing is locked or probed.
func TestChconCalls(t *testing.T) {
	const turns, more = "FASTLABEL_CHCON_TURNS", 50
	if n, err := strconv.Atoi(os.Getenv(turns)); err == nil {
		for range n {
			if err := Chcon(os.Getenv("FASTLABEL_CHCON"), newLabel, false); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	treetest.Need(t, "root", "strace")
	file := filepath.Join(on(t, "tmpfs"), "f")
	writeFile(t, file)
	calls := func(n int) []treetest.Call {
		cmd := exec.Command(os.Args[0], "-test.run=^TestChconCalls$")
		cmd.Env = append(os.Environ(), turns+"="+strconv.Itoa(n), "FASTLABEL_CHCON="+file)
		calls, out, err := treetest.TraceCmd(t, cmd)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return calls
	}
	few, many := calls(1), calls(1+more)
	places := map[string]bool{}
	for _, c := range few {
		if p, is := c.Path(); is && c.Name == "statx" && filepath.IsAbs(p) && p != file {
			places[p] = true
		}
	}
	if len(places) < 20 {
		t.Errorf("only %d refused places are looked at", len(places))
	}
	// On a busy machine the calls may take several seconds, and a look each.
	if each := float64(len(many)-len(few)) / more; each < 6 || each > 14 {
		names := map[string]int{}
		for _, c := range many {
			names[c.Name]++
		}
		t.Errorf("%.1f calls for each file\n%v", each, names)
	}
	for _, c := range many {
		if path, _ := c.Path(); strings.HasPrefix(path, "/run/fastlabel") {
			t.Fatalf("a lock for one file: %+v", c)
		}
	}
}

// TestKindChanges: a root that becomes a directory, or a file, before any call that
// opens something is labelled as what it is then.
func TestKindChanges(t *testing.T) {
	const env = "FASTLABEL_KIND_CHANGES"
	if label, path, is := strings.Cut(os.Getenv(env), " "); is {
		r, err := Tree(t.Context(), path, label, nil)
		if err != nil || !r.Complete || r.Way == "" {
			t.Fatalf("%+v, %v", r, err)
		}
		if err := Chcon(path, label, false); err != nil {
			t.Fatal(err)
		}
		return
	}
	treetest.Need(t, "root", "seccomp", "tmpfs")
	root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir a\nfile a/f\nfile b\n")
	a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
	for i, calls := 0, 1; i/2 < calls; i++ { // twice before each call: each run leaves the other kind behind
		cmd := exec.Command(os.Args[0], "-test.run=^TestKindChanges$")
		cmd.Env = append(os.Environ(), env+"="+[...]string{newLabel, oldLabel}[i/2%2]+" "+a)
		end := treetest.Supervise(t, cmd, []int{unix.SYS_OPENAT}, func(n treetest.Notice) treetest.Answer {
			if n.Nth == 1+i/2 {
				if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
				}
			}
			return treetest.Answer{}
		})
		if end.Code != 0 {
			t.Fatalf("before call %d: %+v", 1+i/2, end)
		}
		calls = max(calls, end.Calls)
	}
}
