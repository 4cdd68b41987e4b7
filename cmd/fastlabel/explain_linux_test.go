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

	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// told is what the test reads of an explanation in JSON.
type told struct {
	Type      string `json:"message_type"`
	Real      string
	Whole     bool `json:"whole_filesystem"`
	Mount     jsonMount
	Mounts    []jsonMount
	Has       string
	Label     string
	Labelled  bool
	Sealed    bool     `json:"interrupted"`
	LastRun   *jsonRun `json:"last_run"`
	Sample    jsonSample
	Entries   jsonEntries
	Helps     string
	Reasons   []string
	Container []jsonContainer `json:"containers"`
}

func explained(t *testing.T, args ...string) told {
	t.Helper()
	text := transcript(real(), []call{{args: append([]string{"explain", "--output", "json"}, args...)}})
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
		treetest.Build(t, dir, treetest.Text(t, "default label="+stray+"\ndir .\ndir a\nfile a/f%d x30\nfile g label=-\nlink out /etc\n"))
		unchanged := func(f func()) {
			t.Helper()
			before := treetest.Snapshot(t, dir)
			f()
			if d := treetest.Diff(before, treetest.Snapshot(t, dir)); len(d) > 0 {
				t.Error(d)
			}
		}
		unchanged(func() {
			got := explained(t, "-l", "s0:c10,c20", dir)
			if got.Has != stray || got.Label != private || got.Labelled || got.LastRun != nil || got.Helps != "yes" || !got.Sample.Whole || got.Sample.Strays != 33 || got.Entries.Least != 34 {
				t.Errorf("another label: %+v", got)
			}
		})
		if _, err := relabel.Tree(t.Context(), dir, private, relabel.Options{}); err != nil {
			t.Fatal(err)
		}
		treetest.Set(t, dir, "a/f3", stray)
		unchanged(func() {
			for _, args := range [][]string{{dir}, {"--whole", dir}} {
				got := explained(t, args...)
				if got.Label != private || !got.Labelled || got.LastRun == nil || got.LastRun.Entries != 34 || got.Sample.Strays != 1 || !strings.Contains(strings.Join(got.Reasons, " "), "1 of the entries") {
					t.Errorf("%q: a stray: %+v", args, got)
				}
			}
		})
		treetest.Set(t, dir, ".", strings.Replace(private, "system_u", "unconfined_u", 1))
		unchanged(func() {
			if got := explained(t, dir); got.Label != private || got.Labelled || !got.Sealed {
				t.Errorf("a seal: %+v", got)
			}
			for _, output := range []string{"crio", "podman", "kubernetes"} {
				if text := transcript(real(), []call{{args: []string{"explain", "--output", output, dir}}}); !strings.HasSuffix(text, "\nexit 0\n\n") {
					t.Error(text)
				}
			}
		})
	})
}

// What is mounted in it is listed and not read.
func TestExplainMounts(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	dir := treetest.Fresh(t, "tmpfs")
	treetest.Build(t, dir, treetest.Text(t, "default label="+private+"\ndir .\nfile a/f%d x3\ndir a/m\nmount a/m tmpfs ro\nfile a/m/f%d x9\nfile one\nfile two\nmount one bind two\n"))
	got := explained(t, dir)
	if !got.Whole || got.Mount.Type != "tmpfs" || got.Sample.Entries != 6 || len(got.Mounts) != 2 {
		t.Errorf("%+v", got)
	}
	for _, m := range got.Mounts {
		if m.Path == filepath.Join(dir, "a/m") && m.Manner != "ro" || m.Path != filepath.Join(dir, "a/m") && m.Path != filepath.Join(dir, "one") {
			t.Errorf("%+v", m)
		}
	}
	if got := explained(t, filepath.Join(dir, "a/f0")); got.Sample.Entries != 1 || got.Whole || !got.Sample.Whole {
		t.Errorf("a file: %+v", got)
	}
	if got := explained(t, filepath.Join(dir, "a")); got.Whole || got.Real != filepath.Join(dir, "a") {
		t.Errorf("a part: %+v", got)
	}
}

// No call that writes, and none that follows a link or opens what is no directory.
func TestExplainCalls(t *testing.T) {
	treetest.Need(t, "root", "strace", "tmpfs")
	dir := treetest.Fresh(t, "tmpfs")
	treetest.Build(t, dir, treetest.Text(t, "default label="+private+"\ndir .\nfile a/f%d x3\nfifo a/p\nlink a/l /etc\nlink d /etc\n"))
	for _, args := range [][]string{{"explain", dir}, {"explain", "--whole", "--json", dir}} {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), "FASTLABEL_TEST_AS=real")
		opened := 0
		trace, out, err := treetest.TraceCmd(t, cmd)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, c := range trace {
			text := c.Name + " " + strings.Join(c.Args, ", ")
			switch {
			case c.Name == "setxattrat" && (c.Args[0] == "0xffffffffffffffff" || c.Args[0] == "-1"): // is there such a call?
			case strings.Contains(text, `"/sys/fs/selinux/context"`): // what would the policy say to the label?
			case strings.Contains(c.Name, "setxattr"), strings.Contains(c.Name, "removexattr"), c.Name == "mount", c.Name == "open_tree":
				t.Error(text)
			case c.Name == "openat" && strings.Contains(text, "O_WRONLY"), c.Name == "openat" && strings.Contains(text, "O_RDWR"), c.Name == "openat" && strings.Contains(text, "O_CREAT"):
				t.Error(text)
			case c.Name == "openat" && strings.Contains(text, `"p"`), c.Name == "openat" && strings.Contains(text, `"l"`), c.Name == "openat" && strings.Contains(text, `"d"`):
				t.Error("opened:", text)
			case c.Name == "openat" && strings.Contains(text, `"a"`):
				opened++
			}
		}
		if opened == 0 {
			t.Errorf("%q: no call was seen", args)
		}
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
	if got := explained(t, dir); got.Sample.Entries != 4 || !got.Sample.Whole || len(got.Mounts) != 1 || got.Mounts[0].Path != dead {
		t.Errorf("beneath: %+v", got)
	}
	for _, args := range [][]string{{"explain"}, {"explain", "--whole"}, {"explain", "--output", "kubernetes"}} {
		cmd := exec.Command(os.Args[0], append(args, "--timeout", "500ms", dead)...)
		cmd.Env = append(os.Environ(), "FASTLABEL_TEST_AS=apart real")
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != exitDeadline || !strings.Contains(string(out), "the filesystem does not answer") {
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
	if got.Sample.Entries != 4 || len(got.Mounts) != 1 || got.Mounts[0].Type != "autofs" {
		t.Errorf("%+v", got)
	}
	if err := r.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("asked to mount: %d, %v", n, err)
	}
}
