// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The decoder of Prometheus reads what the command writes in test/deploy.
func TestText(t *testing.T) {
	got := string(Text(Run{Command: "verify", Ended: time.Unix(1700000000, 250e6), Paths: []Path{
		{Name: "/a", ExitCode: 4, Elapsed: 1500 * time.Millisecond, Entries: []Count{{"differs", 3}, {"right", 1234567890}}},
		{Name: "a\"b\\c\nd"},
		{Name: "\xff"},
	}}))
	for _, want := range []string{
		`fastlabel_last_run_timestamp_seconds{command="verify",path="/a"} 1700000000.25` + "\n",
		`fastlabel_last_run_duration_seconds{command="verify",path="/a"} 1.5` + "\n",
		`fastlabel_last_run_exit_code{command="verify",path="/a"} 4` + "\n",
		`fastlabel_last_run_entries{command="verify",path="/a",result="differs"} 3` + "\n",
		`fastlabel_last_run_entries{command="verify",path="/a",result="right"} 1234567890` + "\n",
		`fastlabel_last_run_exit_code{command="verify",path="a\"b\\c\nd"} 0` + "\n",
		`fastlabel_last_run_exit_code{command="verify",path="\"\\xff\""} 0` + "\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %s:\n%s", want, got)
		}
	}
}

// A file is replaced, readable for all, and nothing is left beside it.
func TestWrite(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	dir := t.TempDir()
	file := filepath.Join(dir, "x.prom")
	for _, command := range []string{"label", "verify"} {
		if err := Check(file); err != nil {
			t.Fatal(err)
		}
		old, _ := os.Open(file)
		if err := Write(file, Run{Command: command, Paths: []Path{{Name: "/p"}}}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), `command="`+command+`"`) {
			t.Errorf("%v: %s", err, text)
		}
		if old != nil { // who has it open reads on
			before := make([]byte, 1<<16)
			n, err := old.Read(before)
			if err != nil || !strings.Contains(string(before[:n]), `command="label"`) {
				t.Errorf("the former file is not whole: %v: %s", err, before[:n])
			}
			old.Close()
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode() != 0o644 {
		t.Error(info.Mode(), err)
	}
}

// What cannot be written, or must not be replaced, is told before the work, and
// stays as it is.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := os.Symlink("/dev/null", link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{link, pipe, dir, os.DevNull, filepath.Join(dir, "none", "x.prom")} {
		before, _ := os.Lstat(file)
		if err := Check(file); err == nil {
			t.Errorf("%s: no error", file)
		}
		var mode fs.FileMode
		if after, err := os.Lstat(file); err == nil {
			mode = after.Mode()
		}
		if before != nil && mode != before.Mode() {
			t.Errorf("%s: is %v", file, mode)
		}
	}
	if err := Write(dir, Run{}); err == nil {
		t.Error("a directory was replaced")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Error(entries, err)
	}
}
