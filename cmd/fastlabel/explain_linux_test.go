// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// told is what the test reads of an explanation in JSON.
type told struct {
	Type      string `json:"message_type"`
	Real      string
	Directory bool
	Mount     jsonMount
	Mounts    []jsonMount
	Has       string
	Label     string
	Labelled  bool
	Sealed    bool     `json:"interrupted"`
	LastRun   *jsonRun `json:"last_run"`
	Runtimes  []struct{ Runtime, Now, Labelled, Why string }
	Command   string
	Advice    []string
}

func explained(t *testing.T, args ...string) told {
	t.Helper()
	text := transcript(real(), []call{{args: append([]string{"explain", "--json"}, args...)}})
	_, line, _ := strings.Cut(text, "1> ")
	line, end, _ := strings.Cut(line, "\n")
	var got told
	if err := json.Unmarshal([]byte(line), &got); err != nil || end != "exit 0\n\n" || got.Type != "explanation" {
		t.Fatalf("%v: %s", err, text)
	}
	return got
}

// A volume from one state to the next, on each filesystem: what explain says,
// and that it changes nothing.
func TestExplainReal(t *testing.T) {
	treetest.Need(t, "root")
	const stray = "system_u:object_r:etc_t:s0" // a policy lets tmpfs have it
	treetest.Each(t, func(t *testing.T, dir string) {
		treetest.Build(t, dir, treetest.Text(t, "default label="+stray+"\ndir .\ndir a\nfile a/f%d x3\nfile g label=-\nlink out /etc\n"))
		// see returns what is said, as one line a runtime: what it does now.
		see := func(args ...string) (told, string) {
			t.Helper()
			before := treetest.Snapshot(t, dir)
			got := explained(t, append(args, dir)...)
			text := transcript(real(), []call{{args: append(append([]string{"explain"}, args...), dir)}})
			if d := treetest.Diff(before, treetest.Snapshot(t, dir)); len(d) > 0 {
				t.Error(d)
			}
			return got, text
		}
		holds := func(state string, ok bool, got told, text, says string) {
			t.Helper()
			if !ok || !strings.Contains(text, says) {
				t.Errorf("%s: %+v\n%s", state, got, text)
			}
		}
		level := []string{"-l", "s0:c10,c20"}
		got, text := see(level...)
		holds("another label", got.Has == stray && got.Label == private && !got.Labelled && got.LastRun == nil && got.Runtimes[0].Now == "writes every label" && got.Command == "fastlabel -l s0:c10,c20 -- "+dir,
			got, text, "no: no record of a run")

		treetest.Set(t, dir, ".", private)
		got, text = see()
		holds("no record", got.Label == private && got.Labelled && got.LastRun == nil && got.Runtimes[0].Now == "reads every label" && got.Command == "",
			got, text, "Only PATH's own label says that all beneath it is right")

		treetest.Set(t, dir, ".", stray)
		if _, err := relabel.Tree(t.Context(), dir, private, nil); err != nil {
			t.Fatal(err)
		}
		got, text = see()
		holds("a record", got.Label == private && got.Labelled && got.LastRun != nil && got.LastRun.Entries == 7 && got.Command == "",
			got, text, "yes: labelled by fastlabel, ")

		treetest.Set(t, dir, ".", strings.Replace(private, "system_u", "unconfined_u", 1))
		got, text = see()
		holds("a seal", got.Label == private && !got.Labelled && got.Sealed && got.Command != "",
			got, text, "no: a relabel to the label that is asked for did not complete, or is under way")

		treetest.Set(t, dir, ".", stray)
		got, text = see(level...)
		holds("changed since", !got.Labelled && got.LastRun != nil && got.LastRun.Label == private, got, text, ", was to "+private)
	})
}

// What is mounted in it is listed, and not looked at.
func TestExplainMounts(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	dir := treetest.Fresh(t, "tmpfs")
	treetest.Build(t, dir, treetest.Text(t, "default label="+private+"\ndir .\nfile a/f%d x3\ndir a/m\nmount a/m tmpfs ro\nfile a/m/f%d x9\nfile one\nfile two\nmount one bind two\n"))
	got := explained(t, dir)
	if got.Mount.Type != "tmpfs" || len(got.Mounts) != 2 {
		t.Errorf("%+v", got)
	}
	for _, m := range got.Mounts {
		if m.Path == filepath.Join(dir, "a/m") && m.Manner != "ro" || m.Path != filepath.Join(dir, "a/m") && m.Path != filepath.Join(dir, "one") {
			t.Errorf("%+v", m)
		}
	}
	if got := explained(t, filepath.Join(dir, "a/f0")); got.Directory || got.Mount.Path != dir {
		t.Errorf("a file: %+v", got)
	}
	if got := explained(t, filepath.Join(dir, "a")+"/."); got.Real != filepath.Join(dir, "a") || len(got.Mounts) != 1 {
		t.Errorf("a part: %+v", got)
	}
}

// Where there is nothing to label, that is said, and no command is given.
func TestExplainNothingToLabel(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "plain")
	bare := filepath.Join(treetest.Fresh(t, "tmpfs"), "bare")
	if err := os.Mkdir(bare, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", bare, "ramfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer syscall.Unmount(bare, syscall.MNT_DETACH)
	got := explained(t, bare)
	if got.Mount.Labels == nil || *got.Mount.Labels || got.Mount.NoLabels != "the filesystem (ramfs) keeps none" || got.Runtimes[0].Now != "nothing" || got.Runtimes[2].Now != "fails" || got.Command != "" {
		t.Errorf("no labels: %+v", got)
	}
	if got := explained(t, "/etc"); got.Runtimes[0].Now != "fails" || got.Command != "" || !strings.Contains(got.Runtimes[0].Why, "directory of the system") {
		t.Errorf("refused: %+v", got)
	}
}

// No call that writes, and none beneath PATH: a chain of 2,000 directories takes as
// many calls as an empty directory.
func TestExplainCalls(t *testing.T) {
	treetest.Need(t, "root", "strace", "tmpfs")
	dir := treetest.Fresh(t, "tmpfs")
	treetest.Build(t, dir, treetest.Text(t, "default label="+private+"\ndir .\ndir empty\nfile full/f%d x3\nfifo full/p\nlink full/l /etc\n"))
	chain := filepath.Join(dir, "full")
	for range 2000 {
		chain = filepath.Join(chain, "d")
		if len(chain) > 4000 { // PATH_MAX
			break
		}
	}
	if err := os.MkdirAll(chain, 0o700); err != nil {
		t.Fatal(err)
	}
	made := map[string]int{} // calls that name or read a file
	for _, name := range []string{"empty", "full"} {
		cmd := exec.Command(os.Args[0], "explain", filepath.Join(dir, name))
		cmd.Env = append(os.Environ(), "FASTLABEL_TEST_AS=real")
		trace, out, err := treetest.TraceCmd(t, cmd)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, c := range trace {
			if c.Name == "read" || c.Name == "write" { // what is in it, as the mounts of other tests, is none of PATH's
				c.Args = c.Args[:1]
			}
			text := c.Name + " " + strings.Join(c.Args, ", ")
			switch {
			case c.Name == "setxattrat" && (c.Args[0] == "0xffffffffffffffff" || c.Args[0] == "-1"): // is there such a call?
			case strings.Contains(text, `"/sys/fs/selinux/context"`): // what would the policy say to the label?
			case strings.Contains(c.Name, "setxattr"), strings.Contains(c.Name, "removexattr"), c.Name == "mount", c.Name == "open_tree":
				t.Error(text)
			case c.Name == "openat" && strings.Contains(text, "O_WRONLY"), c.Name == "openat" && strings.Contains(text, "O_RDWR"), c.Name == "openat" && strings.Contains(text, "O_CREAT"):
				t.Error(text)
			case strings.Contains(text, `"d"`), strings.Contains(text, "/d\""), strings.Contains(text, "full/"):
				t.Error("beneath PATH:", text)
			}
			if strings.HasPrefix(c.Name, "open") || strings.Contains(c.Name, "xattr") || strings.Contains(c.Name, "stat") || c.Name == "getdents64" {
				made[name]++
			}
		}
	}
	if made["empty"] == 0 || made["full"] > made["empty"]+20 {
		t.Errorf("calls: %v", made)
	}
}

// A filesystem that answers nothing: as PATH it is told in time, and beneath PATH
// it is not asked.
func TestExplainHung(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "fuse")
	dir := treetest.Fresh(t, "tmpfs")
	treetest.Build(t, dir, treetest.Text(t, "default label="+private+"\ndir .\ndir dead\nfile f%d x3\n"))
	dead := filepath.Join(dir, "dead")
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close() // and every call that hangs returns
	if err := syscall.Mount("dead", dead, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device.Fd())); err != nil {
		t.Fatal(err)
	}
	defer syscall.Unmount(dead, syscall.MNT_DETACH)
	if got := explained(t, dir); len(got.Mounts) != 1 || got.Mounts[0].Path != dead {
		t.Errorf("beneath: %+v", got)
	}
	for _, args := range [][]string{{"explain"}, {"explain", "--json"}} {
		cmd := exec.Command(os.Args[0], append(args, "--timeout", "500ms", dead)...)
		cmd.Env = append(os.Environ(), "FASTLABEL_TEST_AS=apart real")
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != exit.TimedOut || !strings.Contains(string(out), "the filesystem does not answer") {
			t.Errorf("%q: exit %d: %s", args, cmd.ProcessState.ExitCode(), out)
		}
	}
}

// An automount is not triggered: nobody who serves it hears of a request.
func TestExplainAutomount(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	dir := treetest.Fresh(t, "tmpfs")
	treetest.Build(t, dir, treetest.Text(t, "default label="+private+"\ndir .\ndir auto\nfile f%d x3\n"))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	auto := filepath.Join(dir, "auto")
	if err := syscall.Mount("auto", auto, "autofs", 0, fmt.Sprintf("fd=%d,pgrp=1,minproto=5,maxproto=5,direct", w.Fd())); err != nil {
		treetest.Lack(t, "autofs", err)
	}
	defer syscall.Unmount(auto, syscall.MNT_DETACH)
	got := explained(t, dir)
	if len(got.Mounts) != 1 || got.Mounts[0].Type != "autofs" {
		t.Errorf("%+v", got)
	}
	if err := r.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("asked to mount: %d, %v", n, err)
	}
}
