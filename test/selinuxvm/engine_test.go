// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// exception is a test that cannot do in the machine what it does elsewhere.
// One that passes nevertheless is welcome.
type exception struct {
	test string // a regular expression for the whole name, with the package before it
	says string // another, for what it must say when it fails
	why  string
}

// unrun are tests of size, at their top level. Emulated each takes minutes, and
// nothing in them turns on the policy but in TestCreatedMeanwhile, which passed
// when it was let: TestWriters of package inside stands for it.
var unrun = "^(TestAllocations|TestCallsPerEntry|TestCancelSoon|TestCreatedMeanwhile|TestFewDescriptors|TestHookProbes|TestMemory|TestTune.*)$"

// lacking are reasons to skip: what the machine does not have, and says so.
// All else is promised to the tests, so that they fail instead.
var lacking = regexp.MustCompile(`(needs (btrfs|cc|fuse|go): |needs setxattrat: function not implemented|takes long\n|SELinux is running: )`)

// TestEngine runs the tests of the engine and of the command in both kernels.
// They make volumes of their own in the machine: ext4 and XFS on loop devices,
// and tmpfs. Those that want SELinux off, or labels that no policy knows, are
// in exceptions.
func TestEngine(t *testing.T) {
	m := image(t)
	table.reason("not run for its size: " + unrun)
	files := houseFiles(t)
	for _, pkg := range []string{"relabel", "relabel/internal/sys", "relabel/internal/steal", "cmd/fastlabel"} {
		files["tests/"+pkg+".test"] = build(t, house, "./"+pkg, true)
	}
	for _, k := range m.Kernels {
		t.Run(k.Release, func(t *testing.T) {
			t.Parallel()
			promise := "root,ext4,xfs,tmpfs,overlay,seccomp,selinux,strace"
			if k.Setxattrat {
				promise += ",setxattrat"
			}
			for _, pkg := range []string{"relabel", "relabel/internal/sys", "relabel/internal/steal", "cmd/fastlabel"} {
				t.Run(pkg, func(t *testing.T) {
					all := runTests(t, m, k, Command{
						Args:    []string{"/payload/tests/" + pkg + ".test", "-test.short", "-test.skip=" + unrun},
						Dir:     "/payload/house/" + pkg,
						Env:     []string{"FASTLABEL_PROMISE=" + promise},
						Files:   files,
						Timeout: 30 * time.Minute,
					})
					for _, r := range all {
						judge(t, m, k, pkg, r)
					}
				})
			}
		})
	}
}

// judge makes a subtest of a result, and a line of the table.
func judge(t *testing.T, m *Image, k Kernel, pkg string, r result) {
	word := strings.ToLower(r.word)
	e := except(pkg+" "+r.name, r.said)
	switch {
	case r.word == "SKIP" && lacking.MatchString(r.said):
		table.add(m, k, pkg, r.name, word)
		table.reason("skipped: " + pkg + " " + r.name + ": " + firstLine(r.said))
		return
	case r.word == "FAIL" && e != nil:
		table.add(m, k, pkg, r.name, "excepted")
		table.reason("excepted: " + e.test + ": " + e.why)
		return
	}
	table.add(m, k, pkg, r.name, word)
	t.Run(r.name, func(t *testing.T) {
		if r.word != "PASS" {
			t.Errorf("%s in the machine: %s", r.word, r.said)
		}
	})
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func except(name, said string) *exception {
	for i, e := range exceptions {
		if regexp.MustCompile("^(?:"+e.test+")$").MatchString(name) && regexp.MustCompile(e.says).MatchString(said) {
			return &exceptions[i]
		}
	}
	return nil
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
