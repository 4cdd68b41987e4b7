// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

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
