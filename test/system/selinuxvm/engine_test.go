// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// house is the root of the repository.
const house = "../../.."

// packages are those whose tests run in the machine: all of the engine, and the command.
func packages(t *testing.T) []string {
	t.Helper()
	list := exec.Command("go", "list", "-f", `{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}`, "./relabel/...", "./internal/...")
	list.Dir = house
	out, err := list.Output()
	treetest.Must(t, err)
	root, err := filepath.Abs(house)
	treetest.Must(t, err)
	var all []string
	for dir := range strings.FieldsSeq(string(out)) {
		all = append(all, strings.TrimPrefix(dir, root+"/"))
	}
	return append(all, "cmd/fastlabel")
}

// only chooses among the packages' tests, all of which take half an hour.
var only = cmp.Or(os.Getenv("FASTLABEL_INSIDE"), ".")

// absent is what the machine cannot have: SELinux off, a filesystem that is not in its
// initramfs, and a compiler. The older kernel lacks setxattrat too, and modules.
var absent = []string{"plain", "autofs", "gcc"}

// TestEngine runs the tests of the engine and of the command in both kernels.
// They make volumes of their own in the machine: ext4, XFS and btrfs on loop
// devices, and tmpfs. None may skip but for want of what is absent there.
func TestEngine(t *testing.T) {
	m := image(t)
	files := houseFiles(t)
	files["fastlabel"] = build(t, house, "./cmd/fastlabel", false)
	var chosen []string
	for _, pkg := range packages(t) {
		binary := build(t, house, "./"+pkg, true)
		files["tests/"+pkg+".test"] = binary
		list, err := exec.Command(binary, "-test.list", only).Output()
		if treetest.Must(t, err); len(list) > 0 {
			chosen = append(chosen, pkg)
		}
	}
	for _, k := range m.Kernels {
		t.Run(k.Release, func(t *testing.T) {
			t.Parallel()
			promise, excused := "root,ext4,xfs,btrfs,tmpfs,overlay,seccomp,selinux,strace,go", absent
			if k.Setxattrat {
				promise += ",setxattrat"
			} else {
				excused = append(slices.Clip(absent), "setxattrat", "fuse", "fscrypt")
			}
			for _, pkg := range chosen {
				t.Run(pkg, func(t *testing.T) {
					runTests(t, m, k, Command{
						Args:    []string{"/payload/tests/" + pkg + ".test", "-test.short", "-test.run=" + only},
						Dir:     "/payload/house/" + pkg,
						Env:     []string{"FASTLABEL_PROMISE=" + promise, "FASTLABEL_COMMAND=/payload/fastlabel"},
						Files:   files,
						Timeout: time.Hour,
					}, excused...)
				})
			}
		})
	}
}

// houseFiles are the repository's, which some tests read: trees, goldens, docs.
func houseFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for f := range strings.SplitSeq(treetest.Output(t, exec.Command("git", "-C", house, "ls-files", "-z")), "\x00") {
		from := filepath.Join(house, f)
		if info, err := os.Lstat(from); err == nil && info.Mode().IsRegular() {
			files["house/"+f] = from
		}
	}
	return files
}
