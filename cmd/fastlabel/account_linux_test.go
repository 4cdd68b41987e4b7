// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestMetricsSpares: --metrics replaces nothing but metrics, and writes neither what
// is a PATH nor what lies in one, in a dry run either. What another way leads to is
// found where the kernel finds it.
func TestMetricsSpares(t *testing.T) {
	root := etcRoot(t)
	dir := filepath.Dir(root)
	file := filepath.Join(dir, "file")
	for name, text := range map[string]string{file: "precious", file + ".text": "# HELP me\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{file + ".link": root + "/d", root + "/back": dir} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	before := treetest.List(t, root)
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"--metrics " + file + " " + root, 2, "is not replaced"},
		{"-n --metrics " + file + " " + root, 2, "is not replaced"},
		{"verify --metrics " + file + " " + root, 2, "is not replaced"},
		{"--metrics " + file + ".text " + root, 2, "is not replaced"},
		{"--metrics " + root + "/x.prom " + root, 2, "lie in"},
		{"-n --metrics " + root + "/d/x.prom " + root, 2, "lie in"},
		{"probe --metrics " + file + ".link/x.prom " + dir + " " + root, 2, "lie in"},
		{"--metrics " + file + ".link/../x.prom " + root, 2, "lie in"},
		{"--metrics " + root + "/f01 " + root + "/f01", 2, "lie in"},
		{"--metrics " + root + "/x.prom --level nonsense " + root, 2, "--level"},
	} {
		if text := says(t, c.code, strings.Fields(c.args)...); !strings.Contains(text, c.text) {
			t.Errorf("%s:\n%s", c.args, text)
		}
	}
	if d := treetest.Diff(before, treetest.List(t, root)); len(d) > 0 {
		t.Error(d)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != "precious" {
		t.Errorf("the file was touched: %q, %v", after, err)
	}
	// What is empty or metrics is replaced, and a way through PATH may lead out of it.
	if err := os.WriteFile(file+".prom", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		says(t, 0, "--metrics", file+".prom", root)
	}
	says(t, 0, "--metrics", root+"/back/r", root)
	if _, err := os.Stat(dir + "/r"); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 6 {
		t.Error(names, err)
	}
}
