// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// Each wrong call is refused in one line, before anything is begun.
func TestUsage(t *testing.T) {
	all := calls(
		"", "probe", "verify", "-n", "--foo", "-Z /p", "-nZ /p", "--foo=bar /p", "probe --exact /p", "verify -n /p",
		"---x /p",
		"--skip /p", "--skip some /p", "--hard-links some /p", "--progress=maybe /p", "verify --max-rate -1 /p", "--max-rate many /p", "probe --threads 2 /p", "probe -p /p",
		"-T -1 /p", "-T 1025 /p", "-T many /p", "--timeout -1s /p", "--timeout 90 /p", "--json=maybe /p",
		"probe --depth all /p", "-q -v /p", "-0 /p", "hook /p", "hook -n", "hook --timeout never", "version /p", "--label",
		"--label container_file_t /p", "--label a:b /p", "--label u:r:t:s0:c1:c2 /p", "--label u:r:t:s0:c1:x:y:z:1 /p",
		"--label u:r:t:s0:c1024 /p", "--label u:r:t:s0:c9999 /p", "--label u:r:t:s0:c5.c3 /p", "--label u:r:t:s1-s0 /p", "--label u:r:t:s0:c1-s0 /p",
		"--label s0:c1,c2 /p", "--label ::: /p", "--label u:r:t:s0 -t x_t /p", "--reference /f --label u:r:t:s0 /p", "--reference /f -l s0 /p",
		"--label u:r:t:s0 --reference /f -l s0 -t x_t /p", "--only type -l s0:c1 /p", "completion bsh",
		"-t a:b /p", "-l c1 /p", "-l s0:c1024 /p", "--role object_r:x /p", "-u system/u /p", "-T 4 -t a:b verify /p",
	)
	for _, args := range [][]string{
		{""},
		{"/p", ""},
		{"--", ""},
		{"--label", "", "/p"},
		{"-t", "", "/p"},
		{"-e", "", "/p"},
		{"-f", ""},
		{"--label", "u:r:t:s0 ", "/p"},
		{"--label", "u:r:t\x1b[31m:s0", "/p"},
		{"--label", "u:r:t:s0\n", "/p"},
		{"--label", "u:r:" + strings.Repeat("t", 4090) + ":s0", "/p"},
		{"-t", "bad type", "/p"},
		{"--skip", "\x1b[31m\xff", "/p"},
		{"--\x1b[31m", "/p"},
		{"-é", "/p"},
		{"--" + strings.Repeat("x", 200), "/p"},
	} {
		all = append(all, call{args: args})
	}
	got := transcript(app{}, all) // no engine: it must not be asked
	golden(t, "usage", got)
	if n := strings.Count(got, "\nexit 2\n"); n != len(all) {
		t.Errorf("%d of %d exit with 2", n, len(all))
	}
	if n := strings.Count(got, "\n2> "); n != len(all) {
		t.Errorf("%d lines on stderr for %d calls", n, len(all))
	}
}

func TestFilesFrom(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"empty": "", "blank": "\n\n\n", "lines": "/one\n\n/missing", "nul": "/one\x00/a\nb\x00", "hole": "/one\x00\x00/two\x00",
	} {
		treetest.Must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	all := calls("-f empty", "-f blank", "-0f empty", "-f empty /one", "--json -f empty", "-f lines", "/trusted -f lines",
		"-0 -f nul", "-f nul", "-0 -f hole", "-f nothere", "-f .", "probe -f lines", "verify -f lines")
	all = append(all, call{[]string{"-f", "-"}, "/one\n-n\n"}, call{[]string{"-0", "-f", "-"}, "/one\x00/na\xffme"})
	got := transcript(fake(), all)
	synctest.Test(t, func(*testing.T) {
		got += transcript(fake(), []call{{[]string{"--timeout", "300ms", "-f", "-", "/cause"}, "/deadline\n/next\n"}})
	})
	golden(t, "files", got)
}

// -- ends flags and commands, and a command's name is one only in front.
func TestDispatch(t *testing.T) {
	for line, want := range map[string]string{
		"/p": "", "probe /p": "probe", "-- probe": "", "/p probe": "", "-l s0 probe /p": "probe", "-e probe /p": "",
		"-q verify /p": "verify", "./probe": "", "-n -- verify": "", "": "",
		"--label=u:r:t:s0 probe /p": "probe", "-T4 verify /p": "verify", "-- hook": "",
	} {
		s, operands, err := parsed(strings.Fields(line))
		if err != nil || s.command != want {
			t.Errorf("%q: command %q, operands %q, %v", line, s.command, operands, err)
		}
	}
}

func TestResumption(t *testing.T) {
	for _, c := range []struct{ args, left, want string }{
		{"-l s0:c1 /a /b /c", "/b /c", "fastlabel --level=s0:c1 -- /b /c"},
		{"-nvx -T4 /a -e /a/b", "/a", "fastlabel --dry-run --verbose=1 --one-file-system --threads=4 --exclude=/a/b -- /a"},
		{"verify --json=false /a -- /b -n", "/a -n", "fastlabel verify --json=false -- /a -n"},
		{"-f list /a", "/x", "fastlabel --files-from=list --"},
	} {
		s, operands, err := parsed(strings.Fields(c.args))
		treetest.Must(t, err)
		got := resumption("fastlabel", &s, operands, strings.Fields(c.left))
		if got != c.want {
			t.Errorf("%s\n%s", got, c.want)
		}
		again, rest, err := parsed(strings.Fields(got)[1:])
		if err != nil || again.command != s.command || c.left != "/x" && !slices.Equal(rest, strings.Fields(c.left)) {
			t.Errorf("%s is %q %q: %v", got, again.command, rest, err)
		}
	}
}

// TestRemoved: what the release before had is refused, nothing is begun, and the message
// says what to use instead.
func TestRemoved(t *testing.T) {
	expect := func(instead string, args ...string) {
		t.Helper()
		a := app{}
		var out, errs strings.Builder
		code := a.run(t.Context(), strings.NewReader(""), &out, &errs, args)
		if code != 2 || out.Len() > 0 || !strings.Contains(errs.String(), "was removed: "+instead) {
			t.Errorf("%q: exit %d, stdout %q, stderr %q; want exit 2 and %q", args, code, &out, &errs, instead)
		}
	}
	for flag, instead := range maps.All(removedFlags) {
		expect(instead, "--"+flag, "1", "/srv/volume")
	}
	for command, instead := range maps.All(removedCommands) {
		expect(instead, command, "/srv/volume")
	}
}
