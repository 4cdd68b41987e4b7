// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/relabel"
)

// A path that is listed twice, or lies in another, is done once; one that the
// other does not reach is done by itself.
func TestCover(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"a/b/c", "ab", "d"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("a/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": "a", "d/up": "../a/b", "d/file": "../a/file"} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link("a/file", "hard"); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"a a", "a"},
		{"a a/ ./a " + here + "/a a/. a/b/..", "a"},
		{"a a/b a/b/c a/file", "a"},
		{"a/b/c a/b a", "a"},
		{"a/b/c a/b/c a", "a"},
		{"a ab d", "a ab d"},
		{"a link", "a link"}, // the link itself
		{"a link/", "a"},     // what is behind it
		{"a link/b", "a"},    // and through it
		{"a d/up", "a d/up"},
		{"a d/up/", "a"},
		{"a d/up/..", "a"}, // .. of what is behind the link
		{"link link/b", "link link/b"},
		{"a/file hard", "a/file"},
		{"d d/file", "d"},
		{"-e a/b a a/b/c", "a a/b/c"},
		{"-e a/b a a/b", "a a/b"},
		{"-e d/up a a/b/c", "a a/b/c"},
		{"-e ab a a/b/c", "a a/b/c"}, // in doubt
		{"-x a a/b", "a"},
		{"--skip root a a/b a", "a a/b"},
		{"a nothere nothere", "a nothere nothere"},
		{". a", "."},
		{"/ " + here, "/ " + here}, // the walk of / is refused
	} {
		var done []string
		a := app{tree: func(_ context.Context, root, _ string, _ *relabel.Options, _ bool) (relabel.Report, error) {
			done = append(done, root)
			if root == "/" {
				return relabel.Report{}, relabel.ErrRefused
			}
			return relabel.Report{Seen: 1, Right: 1, Complete: true}, nil
		}}
		transcript(a, calls(c.args))
		if got := strings.Join(done, " "); got != c.want {
			t.Errorf("%s: did %q, not %q", c.args, got, c.want)
		}
	}
	golden(t, "cover", transcript(fake(), calls("-v a a/b", "a a/b", "--json a a/b a")))
}
