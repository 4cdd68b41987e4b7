// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// real is the app that run makes.
func real() app {
	return app{tree: treeOrCheck, inspect: relabel.Inspect, lstat: os.Lstat, readOnly: site.ReadOnly}
}

// The command with the library, on a tree.
func TestReal(t *testing.T) {
	treetest.Need(t, "root")
	t.Chdir(treetest.Fresh(t, "tmpfs")) // where no call waits for a disk
	ownRuntime(t)
	treetest.Must(t, os.MkdirAll("v/sub", 0o700))
	for _, name := range []string{"v/sub/fi\xffle", "v/sub/other"} {
		treetest.Must(t, os.WriteFile(name, nil, 0o600))
	}
	var got strings.Builder
	do := func(lines ...string) { got.WriteString(transcript(real(), calls(lines...))) }
	setLabel(t, "v", etcLabel)
	do("-T1 -t usr_t v", "probe v", "-n v", "verify -q v", "-T1 v", "probe v", "probe --depth top v", "v", "--skip root v", "--json v", "v v/sub v", "-x -e v/sub/other v")
	setLabel(t, "v/sub/fi\xffle", etcLabel)
	do("verify -v v", "--json -v v", "verify v")
	setLabel(t, "v", "unconfined_u:object_r:container_file_t:s0")
	do("probe v", "--json v", "probe v", "v/sub/other", "v/", "nothere", "probe nothere", "/etc", "/", "-e nothere v")
	if chattr, err := exec.LookPath("chattr"); err == nil && exec.Command(chattr, "+i", "v/sub/other").Run() == nil {
		defer func() { _ = exec.Command(chattr, "-i", "v/sub/other").Run() }()
		text := alike(transcript(real(), calls("-t usr_t v", "probe -t usr_t v")))
		for _, want := range []string{
			"2> fastlabel: \"v/sub/other\": setxattr", ": operation not permitted: it is immutable (chattr -i ends that)\n", "1 failed", "\nexit 1\n",
			"1> v: not labelled: a relabel to system_u:object_r:usr_t:s0 did not complete, or is at work\nexit 4\n",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in:\n%s", want, text)
			}
		}
	}
	golden(t, "real", alike(got.String()))

	golden(t, "real-proc", alike(transcript(real(), calls("/proc/self/status", "probe /proc/self/status"))))
}

// alike takes out what differs between machines and runs: the time, the way,
// the names of the calls.
func alike(text string) string {
	for pattern, with := range map[string]string{
		`\d+\.\d{3} s(, [\d,]+/s)?\b`: "T s", `"seconds":[0-9.e-]+`: `"seconds":T`, `"way":"[^"]*"`: `"way":"W"`,
		`\bl?(get|set)xattr(at)?\b`:           "${1}xattr",
		`\b(openat2?|open|statx|open_tree)\b`: "open",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, with)
	}
	return text
}
