// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exception are tests that cannot do in the machine what they do elsewhere: they
// skip there, and say why. One that does not is stale, and fails.
type exception struct {
	suite string   // Debian's, of the kernel that cannot; "" is each
	tests []string // whole names, with the package before them
	says  string   // a regular expression for what they say
	why   string
}

// bookworm and backports are the suites of the kernels without setxattrat and with it.
const bookworm, backports = "bookworm", "trixie-backports"

var exceptions = []exception{
	{
		tests: []string{
			"relabel TestSealHolds/ext4/no_label", "relabel TestSealHolds/xfs/no_label", "relabel TestSealHolds/btrfs/no_label", "relabel TestSealHolds/tmpfs/no_label",
		},
		says: `needs plain`,
		why:  "a root without a label, which no entry is where SELinux is on",
	},
	{
		tests: []string{
			"relabel TestEveryWay/labels/ext4", "relabel TestEveryWay/labels/xfs", "relabel TestEveryWay/labels/btrfs", "relabel TestEveryWay/labels/tmpfs",
		},
		says: `needs plain`,
		why:  "a tree of labels that are no contexts",
	},
	{
		tests: []string{"relabel TestApplyOracle"},
		says:  `needs plain`,
		why:   "libselinux's restorecon, which would go by the machine's own list of customizable types",
	},
	{
		tests: []string{
			"cmd/fastlabel TestMistyped", "cmd/fastlabel TestNotMounted", "cmd/fastlabel TestNotRoot", "cmd/fastlabel TestReadOnly",
		},
		says: `needs plain`,
		why:  "what a person is told where no policy has a say",
	},
	{
		tests: []string{"relabel TestWithoutTable"},
		says:  `needs plain`,
		why:   "a file mounted over one of /proc, which the policy lets nobody do",
	},
	{
		tests: []string{"cmd/fastlabel TestReferenceBroken", "cmd/fastlabel TestHostileBytes"},
		says:  `needs plain`,
		why:   "files that have no label, or what is no context, which the kernel does not let them",
	},
	{
		tests: []string{
			"cmd/fastlabel TestScripts/fish", "cmd/fastlabel TestScripts/zsh",
			"relabel TestAutomountInside", "relabel TestAutomountRoot",
		},
		says: `needs (fish|zsh|autofs): `,
		why:  "programs and a filesystem that the machine's small root and initramfs do not have, and that no policy has a say in",
	},
	{
		suite: bookworm,
		tests: []string{"cmd/fastlabel TestFilesHang", "relabel TestEncrypted", "relabel TestProbeDead"},
		says:  `needs (fuse|fscrypt): `,
		why:   "modules that the initramfs of this kernel does not have",
	},
	{
		tests: []string{"cmd/fastlabel TestDocsRun", "cmd/fastlabel TestUndoPage"},
		says:  `needs plain`,
		why:   "the node that the pages take for granted, without the programs that ask a policy",
	},
	{
		suite: backports,
		tests: []string{"relabel/internal/sys TestMend/rzZwpln/name", "relabel/internal/sys TestMend/rzZwpln/cwd"},
		says:  `needs plain`,
		why:   "a label cut short, one with 200 bytes too many, one with two NULs: the kernel stores none of them as it is",
	},
	{
		suite: backports,
		tests: []string{"relabel/internal/sys TestVisit/d_xxxxxxxxx_0_0"},
		says:  `needs plain`,
		why:   "a directory that has 300 bytes which are no context",
	},
	{
		suite: bookworm,
		tests: []string{
			"relabel TestAllocations", "relabel TestApplyCalls", "relabel TestCallsPerEntry", "relabel TestNothingElseOpened", "relabel TestVisitOrder",
			"relabel TestErrnoTable", "relabel TestWayByAnswers", "relabel/internal/sys TestXattr",
			"relabel/internal/sys TestAttrHolds",
			"relabel/internal/sys TestMend", "relabel/internal/sys TestMendStops",
			"relabel/internal/sys TestVisit", "relabel/internal/sys TestRowLetsGo",
		},
		says: `needs setxattrat: function not implemented`,
		why:  "about a call that this kernel lacks; what the engine does without it is tested by the others",
	},
}

// unrun are not even begun.
var unrun = []struct{ pkg, test, why string }{
	{"relabel", "TestFewDescriptors", "a hundred thousand entries take an emulated processor long, for a bound that no policy moves"},
}

// skipped is a regular expression for the tests of a package that are not begun.
// Each must be there.
func skipped(t *testing.T, pkg, binary string) string {
	t.Helper()
	var names []string
	for _, u := range unrun {
		if u.pkg != pkg {
			continue
		}
		table.reason("not run: " + pkg + " " + u.test + ": " + u.why)
		names = append(names, u.test)
		if !slices.Contains(tests(t, binary, "^"+u.test+"$"), u.test) {
			t.Errorf("%s has no %s: the exception is stale", pkg, u.test)
		}
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// judge makes a subtest and a line of the table of each result of a package.
func judge(t *testing.T, m *Image, k Kernel, pkg string, all []result) {
	t.Helper()
	due := map[string]exception{}
	for _, e := range exceptions {
		for _, name := range e.tests {
			if strings.HasPrefix(name, pkg+" ") && (e.suite == "" || e.suite == k.Suite) {
				due[name] = e
			}
		}
	}
	for _, r := range all {
		name, word := pkg+" "+r.name, strings.ToLower(r.word)
		e, is := due[name]
		delete(due, name)
		as := is && r.word == "SKIP" && regexp.MustCompile(e.says).MatchString(r.said)
		switch {
		case is && !as:
			word = "fail"
		case as:
			word = "excepted"
			on := ""
			if e.suite != "" {
				on = " on Linux " + k.short()
			}
			table.reason("excepted" + on + ": " + name + ": " + e.why)
		}
		table.add(m, k, pkg, r.name, word)
		t.Run(r.name, func(t *testing.T) {
			switch {
			case is && !as:
				t.Errorf("%s in the machine, and the exception for it says that it skips: it is stale, or says something else\n%s", r.word, r.said)
			case !is && r.word != "PASS":
				t.Errorf("%s in the machine: %s", r.word, r.said)
			}
		})
	}
	if only != "." {
		return
	}
	for name := range due {
		t.Errorf("%s was not run, and there is an exception for it", name)
	}
}
