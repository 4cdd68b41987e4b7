// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/seclabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

const (
	undoOld  = "system_u:object_r:etc_t:s0"
	undoTree = "default label=" + undoOld + "\ndir .\nfile f%02d x20\ndir d\nfile d/g%02d x20\nlink l f01\nfile none label=-\n"
)

// says runs the command and returns all that it prints.
func says(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if got := real().run(t.Context(), strings.NewReader(""), &out, &out, args); got != code {
		t.Errorf("fastlabel %q: exit %d, not %d\n%s", args, got, code, out.String())
	}
	return out.String()
}

func undoRoot(t *testing.T) (root, file string) {
	t.Helper()
	dir := t.TempDir()
	setLabel(t, dir, undoOld) // or skip
	root = filepath.Join(dir, "pv")
	treetest.Build(t, root, treetest.Text(t, undoTree))
	time.Sleep(10 * time.Millisecond) // it is older than the run
	return root, filepath.Join(dir, "record")
}

// TestRecordRestore: what is recorded is put back; a run that was gone on with has
// two records, and they are put back the last first.
func TestRecordRestore(t *testing.T) {
	root, file := undoRoot(t)
	before := treetest.List(t, root)
	labels := func() map[string]string {
		all := map[string]string{}
		for p, it := range treetest.List(t, root) {
			all[p] = it.Label
		}
		return all
	}
	was := map[string]string{}
	for p, it := range before {
		was[p] = it.Label
	}
	if text := says(t, 0, "--record", file, root); !strings.Contains(text, "44 written") || !strings.Contains(text, "fastlabel restore "+file) {
		t.Error(text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() > 2000 {
		t.Error(info, err)
	}
	setLabel(t, filepath.Join(root, "d"), "system_u:object_r:usr_t:s0")
	says(t, 0, "--record", file+".2", root)
	if text := says(t, 4, "restore", "-n", file+".2"); !strings.Contains(text, "to put back") {
		t.Error(text)
	}
	// The root was right in the second run, and wrong things were beneath it.
	if text := says(t, 4, "restore", "-v", file+".2"); !strings.Contains(text, "usr_t") {
		t.Error(text)
	}
	setLabel(t, filepath.Join(root, "d"), seclabel.Default)
	if text := says(t, 0, "restore", file); !strings.Contains(text, "44 put back") {
		t.Error(text)
	}
	if d := treetest.Diff(was, labels()); len(d) > 0 {
		t.Error(d)
	}
	if text := says(t, 0, "restore", "--json", file); !strings.Contains(text, `"written":0,"right":44`) || !strings.Contains(text, `"complete":true`) {
		t.Error(text)
	}
	if text := says(t, 0, "--skip", "root", "--label", undoOld, "--record", file+".3", root); !strings.Contains(text, "nothing was recorded") {
		t.Error(text)
	}
	if _, err := os.Lstat(file + ".3"); !os.IsNotExist(err) {
		t.Errorf("a record of nothing: %v", err)
	}
}

// TestRecordRefused: each is refused before anything is changed.
func TestRecordRefused(t *testing.T) {
	root, file := undoRoot(t)
	before := treetest.List(t, root)
	if err := os.WriteFile(file+".there", []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root, file+".link"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"--record " + file + ".there " + root, 2, "there is such a file"},
		{"--record " + root + "/d/rec " + root, 2, "it would lie in"},
		{"--record " + file + ".link/rec " + root, 2, "it would lie in"},
		{"--record " + file + " " + root + " " + root + "/d", 2, "one PATH"},
		{"-n --record " + file + " " + root, 2, "exclude each other"},
		{"--record " + file + ".no/rec " + root, 2, "no such file"},
	} {
		if text := says(t, c.code, strings.Fields(c.args)...); !strings.Contains(text, c.text) {
			t.Errorf("%s:\n%s", c.args, text)
		}
	}
	if text, err := os.ReadFile(file + ".there"); err != nil || string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
	if d := treetest.Diff(before, treetest.List(t, root)); len(d) > 0 {
		t.Error(d)
	}
}

// TestRestoreRefused: what is no record, or not a whole one, or might be
// somebody else's, is refused before anything is changed.
func TestRestoreRefused(t *testing.T) {
	root, file := undoRoot(t)
	says(t, 0, "--record", file, root)
	before := treetest.List(t, root)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file+".fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	middle := bytes.Clone(whole)
	middle[len(whole)/2] ^= 1
	for name, text := range map[string][]byte{
		"cut": whole[:len(whole)-20], "half": whole[:len(whole)/2], "middle": middle, "foreign": []byte("#!/bin/sh\n"), "empty": nil,
		"newer": append([]byte("fastlabel record 9\n"), whole[19:]...), "shared": whole,
	} {
		if err := os.WriteFile(file+"."+name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(file+".shared", 0o620); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"", 2, "one FILE"},
		{"-", 2, "one FILE"},
		{file + " " + file, 2, "one FILE"},
		{file + ".no", 2, "no such file"},
		{file + ".fifo", 3, "no regular file"},
		{root, 3, "no regular file"},
		{file + ".cut", 3, "--partial"},
		{file + ".half", 3, "--partial"},
		{file + ".middle", 3, "damaged"},
		{file + ".foreign", 3, "no record"},
		{file + ".empty", 3, "no record"},
		{file + ".newer", 3, "newer"},
		{file + ".shared", 3, "others"},
		{"--partial " + file + ".middle", 3, "damaged"},
	} {
		if text := says(t, c.code, append([]string{"restore"}, strings.Fields(c.args)...)...); !strings.Contains(text, c.text) {
			t.Errorf("%s:\n%s", c.args, text)
		}
	}
	if d := treetest.Diff(before, treetest.List(t, root)); len(d) > 0 {
		t.Error(d)
	}
	says(t, 0, "restore", "--partial", file+".cut")
	if d := treetest.Diff(map[string]string{"f01": undoOld}, map[string]string{"f01": treetest.Read(t, root)["f01"]}); len(d) > 0 {
		t.Error(d)
	}
}

// TestMetricsSpares: --metrics replaces nothing but metrics, and writes neither what
// is a PATH nor what lies in one, in a dry run either. What another way leads to is
// found where the kernel finds it.
func TestMetricsSpares(t *testing.T) {
	root, file := undoRoot(t)
	dir := filepath.Dir(file)
	says(t, 0, "--record", file, root)
	if err := os.WriteFile(file+".text", []byte("# HELP me\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{file + ".link": root + "/d", root + "/back": dir} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	before := treetest.List(t, root)
	record, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"--metrics " + file + " " + root, 2, "is not replaced"},
		{"-n --metrics " + file + " " + root, 2, "is not replaced"},
		{"verify --metrics " + file + " " + root, 2, "is not replaced"},
		{"restore --metrics " + file + " " + file, 2, "is not replaced"},
		{"--metrics " + file + ".text " + root, 2, "is not replaced"},
		{"--metrics " + root + "/x.prom " + root, 2, "lie in"},
		{"-n --metrics " + root + "/d/x.prom " + root, 2, "lie in"},
		{"probe --metrics " + file + ".link/x.prom " + dir + " " + root, 2, "lie in"},
		{"--metrics " + file + ".link/../x.prom " + root, 2, "lie in"},
		{"--metrics " + root + "/f01 " + root + "/f01", 2, "lie in"},
		{"restore --metrics " + root + "/x.prom " + file, 2, "lie in"},
		{"--metrics " + root + "/x.prom --level nonsense " + root, 2, "--level"},
		{"--record " + file + ".link/../r " + root, 2, "lie in"},
	} {
		if text := says(t, c.code, strings.Fields(c.args)...); !strings.Contains(text, c.text) {
			t.Errorf("%s:\n%s", c.args, text)
		}
	}
	if d := treetest.Diff(before, treetest.List(t, root)); len(d) > 0 {
		t.Error(d)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, record) {
		t.Errorf("the record was touched: %d bytes, %v", len(after), err)
	}
	// What is empty or metrics is replaced, and a way through PATH may lead out of it.
	if err := os.WriteFile(file+".prom", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		says(t, 0, "--metrics", file+".prom", root)
	}
	says(t, 0, "--record", root+"/back/r", root)
	if _, err := os.Stat(dir + "/r"); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 6 {
		t.Error(names, err)
	}
}

// stopper ends a context at the first line that the command prints.
type stopper struct{ stop func() }

func (s stopper) Write(line []byte) (int, error) {
	s.stop()
	return len(line), nil
}

// TestRestoreOneOfTwo: what a run left, another labelled. The record of the first
// alone leaves the root sealed; both, the last first, give back all.
func TestRestoreOneOfTwo(t *testing.T) {
	levels := func(t *testing.T) (root, file string) {
		root, file = undoRoot(t)
		growLevels(t, root)
		return root, file
	}
	stopped := func(t *testing.T, root, file string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		args := []string{"--verbose", "--threads=1", "--record", file, root}
		if code := real().run(ctx, strings.NewReader(""), stopper{cancel}, io.Discard, args); code != 130 {
			t.Errorf("exit %d", code)
		}
	}
	excluding := func(t *testing.T, root, file string) {
		says(t, 0, "--exclude", root+"/d", "--record", file, root)
	}
	for name, c := range map[string]struct {
		tree  func(t *testing.T) (root, file string)
		first func(t *testing.T, root, file string)
		code  int // of restore from the second record
	}{"stopped": {levels, stopped, 0}, "excluding": {undoRoot, excluding, 4}} { // whose second run found the root right
		t.Run(name, func(t *testing.T) {
			root, file := c.tree(t)
			before := treetest.Read(t, root)
			c.first(t, root, file)
			says(t, 0, "--record", file+".2", root)
			if text := says(t, c.code, "restore", file+".2"); strings.Contains(text, "a record of its own") != (name == "stopped") {
				t.Error(text)
			}
			says(t, 0, "restore", file)
			if d := treetest.Diff(before, treetest.Read(t, root)); len(d) > 0 {
				t.Error(d)
			}

			root, file = c.tree(t)
			c.first(t, root, file)
			says(t, 0, root)
			if text := says(t, 4, "restore", file); !strings.Contains(text, "still have the label") {
				t.Error(text)
			}
			says(t, 4, "probe", "--label", undoOld, root)
		})
	}
}
