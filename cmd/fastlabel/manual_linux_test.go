// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// There is a page for each command, which man and mandoc find nothing wrong with,
// and which shows all that --help shows.
func TestManual(t *testing.T) {
	treetest.Need(t, "man", "mandoc")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	dir := filepath.Join(t.TempDir(), "man")
	if got := transcript(app{}, []call{{args: []string{"--man", dir}}}); !strings.HasSuffix(got, "\nexit 0\n\n") {
		t.Fatal(got)
	}
	for _, c := range shown(noTree()) {
		file := filepath.Join(dir, pageName(c)+".1")
		if text := readText(t, file); !strings.Contains(text, " 2023-11-14 ") {
			t.Errorf("%s has another date", file)
		}
		if text := readText(t, file); !regexp.MustCompile(`(?m)^\.SH NAME\n.*SELinux`).MatchString(text) {
			t.Errorf("apropos SELinux does not find %s", file)
		}
		if out, err := exec.Command("mandoc", "-T", "lint", "-W", "style", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("mandoc -T lint: %v: %s", err, out)
		}
		out := treetest.Man(t, file)
		page := respaced(out)
		for line := range strings.Lines(help(c)) {
			line = strings.TrimSpace(strings.TrimPrefix(line, "Usage:"))
			if strings.HasPrefix(line, "fastlabel ") && !c.HasParent() {
				continue // what the other commands are about is on their pages
			}
			for part := range strings.SplitSeq(line, "   ") { // columns
				part = strings.TrimSuffix(respaced(part), ":")
				if !strings.Contains(strings.ToLower(page), strings.ToLower(part)) && part != "Exit codes" {
					t.Errorf("%s lacks %q:\n%s", file, part, out)
				}
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Shorthand != "" && !strings.Contains(page, "-"+f.Shorthand+", --"+f.Name) {
				t.Errorf("%s lacks -%s", file, f.Shorthand)
			}
		})
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != len(shown(noTree())) {
		t.Error(files, err)
	}
}

// words is text as it reads: without what the width of a page makes of it.
func respaced(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "‐\n", "")), " ")
}
