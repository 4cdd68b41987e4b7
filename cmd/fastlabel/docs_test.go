// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// beside are the pages that are not in docs.
var beside = []string{
	"../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md", "../../CHANGELOG.md", "../../docs/design/performance.md",
	"../../deploy/README.md", "../../deploy/kubernetes/README.md", "../../nri/README.md", "../../test/system/cluster/README.md",
}

// TestDocs holds README.md and the pages in docs to the code: their commands are ones that
// fastlabel accepts, the tests that they name exist, their links lead somewhere,
// and the code that they propose is the example's, which the compiler has seen.
func TestDocs(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 3 {
		t.Fatal(pages, err)
	}
	index := readText(t, "../../docs/README.md")
	for _, page := range pages {
		if name := path.Base(page); name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
	pages = append(pages, beside...)
	tests, makefile := allTests(t), readText(t, "../../Makefile")
	sources, err := filepath.Glob("../../relabel/*.go")
	treetest.Must(t, err)
	var library strings.Builder
	for _, file := range sources {
		library.WriteString(readText(t, file))
	}
	var commands, targets, named, links int
	for _, page := range pages {
		text := readText(t, page)
		for line := range strings.Lines(blocks(text, "sh", "ini")) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "ExecStart=/usr/local/bin/")
			words, _, _ := strings.Cut(line, "#")
			switch {
			case strings.HasPrefix(words, "fastlabel "):
				commands++
				checkCommand(t, page, words)
			case strings.HasPrefix(words, "make "):
				targets++
				if target := strings.Fields(words)[1]; !regexp.MustCompile(`(?m)^` + target + `:`).MatchString(makefile) {
					t.Errorf("%s: make %s: there is no such target", page, target)
				}
			}
		}
		for _, m := range regexp.MustCompile("`(Test[A-Z][A-Za-z]*)`").FindAllStringSubmatch(text, -1) {
			named++
			if !slices.Contains(tests, m[1]) {
				t.Errorf("%s: there is no %s", page, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`\brelabel\.([A-Z]\w+)`).FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^(func|type|\t)\s*` + m[1] + `\b`).MatchString(library.String()) {
				t.Errorf("%s: there is no %s", page, m[0])
			}
		}
		for _, link := range regexp.MustCompile(`\]\(([^):]*)\)`).FindAllStringSubmatch(text, -1) {
			links++
			checkLink(t, page, link[1])
		}
	}
	if commands < 20 || targets < 2 || named < 20 || links < 40 {
		t.Errorf("%d commands, %d targets, %d tests and %d links found", commands, targets, named, links)
	}

	patches, err := filepath.Glob("../../docs/patches/*.patch")
	if err != nil || len(patches) < 5 {
		t.Fatal(patches, err)
	}
	for _, patch := range patches {
		checkHunks(t, patch)
	}
}

// TestFigures: a section with a table of figures names the command that measures them, with a plan
// that the benchmark has, and the page names the Go and the machine.
func TestFigures(t *testing.T) {
	table := regexp.MustCompile(`(?m)^\|.*\| [0-9.,]+ .*\|$`)
	plans := readText(t, "../../bench/plan.go")
	for _, page := range []string{"../../README.md", "../../docs/performance.md", "../../docs/tests.md"} {
		text, tables := readText(t, page), 0
		for _, plan := range regexp.MustCompile(`PLAN=([a-z-]+)`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(plans, `"`+plan[1]+`":`) {
				t.Errorf("%s: the benchmark has no %s", page, plan[0])
			}
		}
		for section := range strings.SplitSeq(text, "\n## ") {
			title, _, _ := strings.Cut(section, "\n")
			if table.MatchString(section) {
				tables++
				if !strings.Contains(section, "`make ") {
					t.Errorf("%s: no command measures the figures of %q", page, title)
				}
			}
		}
		for _, said := range []string{"two processors", "Linux 6.18", "Go 1.26", "November 2026"} {
			if !strings.Contains(text, said) {
				t.Errorf("%s: the figures do not say %q", page, said)
			}
		}
		if tables == 0 {
			t.Errorf("%s: no figures found", page)
		}
	}
}

// checkHunks counts the lines of a patch, each part of which says how many it has.
func checkHunks(t *testing.T, patch string) {
	t.Helper()
	hunks := regexp.MustCompile(`(?m)^@@ -\d+,(\d+) \+\d+,(\d+) @@.*\n((?:[ +-].*\n)*)`).FindAllStringSubmatch(readText(t, patch), -1)
	for _, hunk := range hunks {
		signs := strings.Join(regexp.MustCompile(`(?m)^[ +-]`).FindAllString(hunk[3], -1), "")
		before, after := len(signs)-strings.Count(signs, "+"), len(signs)-strings.Count(signs, "-")
		if hunk[1] != strconv.Itoa(before) || hunk[2] != strconv.Itoa(after) {
			t.Errorf("%s: %d and %d lines in %s", patch, before, after, hunk[0])
		}
	}
	if len(hunks) == 0 {
		t.Errorf("%s: nothing is changed", patch)
	}
}

// checkCommand has the command itself look at a line that calls it.
func checkCommand(t *testing.T, page, line string) {
	t.Helper()
	s, _, err := parsed(strings.Fields(line)[1:])
	if err == nil && s.reference == "" { // a file that is not here
		_, err = target(t.Context(), &s)
	}
	if err != nil {
		t.Errorf("%s: %s: %v", page, line, err)
	}
}

// TestLibraryPage: each block of Go on it stands in an example.
func TestLibraryPage(t *testing.T) {
	files, err := filepath.Glob("../../relabel/example*_test.go")
	treetest.Must(t, err)
	var compiled strings.Builder
	for _, f := range files {
		compiled.WriteString(unindented(readText(t, f)))
	}
	all := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(readText(t, "../../README.md")+readText(t, "../../docs/library.md"), -1)
	for _, b := range all {
		if !strings.Contains(compiled.String(), strings.TrimSuffix(unindented(b[1]), ",\n")) && !strings.Contains(compiled.String(), strings.TrimSuffix(unindented(b[1]), ")\n")) {
			t.Errorf("no example has\n%s", b[1])
		}
	}
	if len(all) < 3 {
		t.Errorf("%d blocks", len(all))
	}
}

// unindented is text without what lines begin with.
func unindented(text string) string { return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(text, "") }

// checkLink finds the file that the link leads to, and the heading in it.
func checkLink(t *testing.T, page, link string) {
	t.Helper()
	file, heading, _ := strings.Cut(link, "#")
	at := page
	if file != "" {
		at = filepath.Join(filepath.Dir(page), file)
	}
	if _, err := os.Stat(at); err != nil {
		t.Errorf("%s: %v", page, err)
		return
	}
	if heading == "" {
		return
	}
	for _, line := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(readText(t, at), -1) {
		slug := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(line[1]), "")
		if strings.ReplaceAll(slug, " ", "-") == heading {
			return
		}
	}
	t.Errorf("%s: no heading in %s is #%s", page, at, heading)
}

// blocks returns what stands in code blocks of these languages.
func blocks(text string, languages ...string) string {
	var out strings.Builder
	for _, b := range regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```$").FindAllStringSubmatch(text, -1) {
		if slices.Contains(languages, b[1]) {
			out.WriteString(b[2])
		}
	}
	return out.String()
}

// allTests are the tests of all modules.
func allTests(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "bin" || d.Name() == ".git"):
			return fs.SkipDir
		case strings.HasSuffix(file, "_test.go"):
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`).FindAllStringSubmatch(readText(t, file), -1) {
				names = append(names, m[1])
			}
		}
		return nil
	})
	treetest.Must(t, err)
	return names
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	treetest.Must(t, err)
	return string(text)
}
