// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// house is the root of the repository.
const house = "../.."

// packages are those whose tests run in the machine: all of the engine, and the command.
func packages(t *testing.T) []string {
	t.Helper()
	list := exec.Command("go", "list", "-f", `{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}`, "./relabel/...")
	list.Dir = house
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(house)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for dir := range strings.FieldsSeq(string(out)) {
		all = append(all, strings.TrimPrefix(dir, root+"/"))
	}
	return append(all, "internal/mountinfo", "internal/secctx", "cmd/fastlabel")
}

// only chooses among the packages' tests, all of which take half an hour.
var only = cmp.Or(os.Getenv("FASTLABEL_INSIDE"), ".")

// TestEngine runs the tests of the engine and of the command in both kernels.
// They make volumes of their own in the machine: ext4, XFS and btrfs on loop
// devices, and tmpfs. What cannot be done there is in exceptions and unrun, and
// all else is promised to them, so that none may skip.
func TestEngine(t *testing.T) {
	m := image(t)
	if only != "." {
		table.reason("TestEngine: only tests that match " + only)
	}
	files := houseFiles(t)
	files["fastlabel"] = build(t, house, "./cmd/fastlabel", false)
	skip := map[string]string{}
	var chosen []string
	for _, pkg := range packages(t) {
		binary := build(t, house, "./"+pkg, true)
		files["tests/"+pkg+".test"] = binary
		skip[pkg] = skipped(t, pkg, binary)
		if len(tests(t, binary, only)) > 0 {
			chosen = append(chosen, pkg)
		}
	}
	for _, k := range m.Kernels {
		t.Run(k.Release, func(t *testing.T) {
			t.Parallel()
			promise := "root,ext4,xfs,btrfs,tmpfs,overlay,seccomp,selinux,strace,go"
			if k.Setxattrat {
				promise += ",setxattrat"
			}
			for _, pkg := range chosen {
				t.Run(pkg, func(t *testing.T) {
					judge(t, m, k, pkg, runTests(t, m, k, Command{
						Args:    []string{"/payload/tests/" + pkg + ".test", "-test.short", "-test.run=" + only, "-test.skip=" + skip[pkg]},
						Dir:     "/payload/house/" + pkg,
						Env:     []string{"FASTLABEL_PROMISE=" + promise, "FASTLABEL_COMMAND=/payload/fastlabel"},
						Files:   files,
						Timeout: time.Hour,
					}))
				})
			}
		})
	}
}

// tests are the names of a binary's tests that match.
func tests(t *testing.T, binary, match string) []string {
	t.Helper()
	out, err := exec.Command(binary, "-test.list", match).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// houseFiles are the repository's, which some tests read: trees, goldens, docs.
func houseFiles(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command("git", "-C", house, "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for f := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if from := filepath.Join(house, f); isFile(from) {
			files["house/"+f] = from
		}
	}
	return files
}

func isFile(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}
