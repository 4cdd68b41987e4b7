// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// Messages that no golden file holds have the form as well.
func TestMessages(t *testing.T) {
	treetest.Need(t, "root", "plain")
	t.Chdir(t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	const volume = "pods/u/volumes/kubernetes.io~csi/pv/mount"
	for _, dir := range []string{"pv", "mine", volume} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("pv", "link"); err != nil {
		t.Fatal(err)
	}
	a := real()
	a.name = "fastlabel"
	for _, c := range []struct{ line, want string }{
		{"link", "2> fastlabel: link: it is a symbolic link: only the link was labelled; write link/ for the directory\n"},
		{"--record r pv", "2> fastlabel: r: recorded; to put the labels back: fastlabel restore r\n"},
		{"--skip root --record s pv", "2> fastlabel: s: nothing was recorded\n"},
		{"--record pv/r pv", ""},
		{"--metrics pv/r pv", ""},
		{"restore pv", ""},
		{"/proc", ""},
		{"--exclude mine pv", ""},
		{volume, ": no volume is mounted there: it is the kubelet's directory for one (kubernetes.io/csi); give the place where it is mounted\n"},
	} {
		got := transcript(a, calls(c.line))
		formed(t, got)
		if !strings.Contains(got, c.want) || !strings.Contains(got, "2> ") {
			t.Errorf("%s lacks %s", got, c.want)
		}
	}
	if err := syscall.Mount("none", volume, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(volume, 0) })
	if got := transcript(a, calls(volume, filepath.Join(volume, "."))); strings.Contains(got, "no volume") {
		t.Error(got)
	}
}
