// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/metrics"
)

// TestDocs holds the pages in docs to the code: their commands are ones that
// fastlabel accepts, the tests that they name exist, their links lead somewhere,
// and the code that they propose is the example's, which the compiler has seen.
func TestDocs(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 3 {
		t.Fatal(pages, err)
	}
	tests := testNames(t)
	var commands, named, links int
	for _, page := range pages {
		text := readText(t, page)
		for _, line := range regexp.MustCompile("(?m)^(?:ExecStart=/usr/local/bin/)?(fastlabel .*)$").FindAllStringSubmatch(blocks(text, "sh", "ini"), -1) {
			commands++
			words, _, _ := strings.Cut(line[1], "#")
			c, args, err := dispatch(strings.Fields(words)[1:])
			var s *settings
			if err == nil {
				s, _, err = parse(c, args)
			}
			if err == nil {
				_, err = target(t.Context(), s)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", page, words, err)
			}
		}
		for _, run := range regexp.MustCompile("go test [^`]*-run '?([^' `]+)'? [^`]*`").FindAllStringSubmatch(text, -1) {
			for name := range strings.SplitSeq(run[1], "|") {
				name, _, _ = strings.Cut(name, "/")
				named++
				if !slices.ContainsFunc(tests, func(t string) bool { return strings.HasPrefix(t, name) }) && name != "^$" {
					t.Errorf("%s: %s: there is no %s", page, run[0], name)
				}
			}
		}
		for _, m := range regexp.MustCompile("`(Test[A-Z][A-Za-z]*)`").FindAllStringSubmatch(text, -1) {
			named++
			if !slices.Contains(tests, m[1]) {
				t.Errorf("%s: there is no %s", page, m[1])
			}
		}
		for _, link := range regexp.MustCompile(`\]\(([^):]*)\)`).FindAllStringSubmatch(text, -1) {
			links++
			checkLink(t, page, link[1])
		}
	}
	if commands < 6 || named < 20 || links < 20 {
		t.Errorf("%d commands, %d tests and %d links found", commands, named, links)
	}

	_, proposed, _ := strings.Cut(readText(t, "../../docs/runtimes.md"), "+func volumeLabel(")
	proposed, _, _ = strings.Cut(proposed, "\n```")
	_, compiled, ok := strings.Cut(readText(t, "../../relabel/example_runtimes_test.go"), "\nfunc volumeLabel(")
	compiled, _, _ = strings.Cut(compiled, "\n}\n")
	// A line of a diff begins with a plus, or with a blank that is no part of it.
	if got := regexp.MustCompile(`\n[+ ]`).ReplaceAllString(proposed, "\n"); !ok || got != compiled+"\n}" {
		t.Errorf("proposed is\n%s\nand compiled is\n%s", got, compiled)
	}
}

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
	for _, b := range regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		if slices.Contains(languages, b[1]) {
			out.WriteString(b[2])
		}
	}
	return out.String()
}

func testNames(t *testing.T) (names []string) {
	t.Helper()
	for _, dir := range []string{".", "../../relabel", "../../test/torture", "../../test/selinuxvm/inside"} {
		files, err := filepath.Glob(dir + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(readText(t, f), -1) {
				names = append(names, m[1])
			}
		}
	}
	return names
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docs/output.md says what the code does: its exit codes are the README's, its
// metrics are ones that are written, and its last line is one. Its JSON is held
// against the schema in test/deploy.
func TestOutputPage(t *testing.T) {
	page := readText(t, "../../docs/output.md")
	rows := func(text string) []string {
		return regexp.MustCompile(`(?m)^\| [0-9, ]+ \|`).FindAllString(text, -1)
	}
	if got, want := rows(page), rows(readText(t, "../../README.md")); len(got) != 7 || !slices.Equal(got, want) {
		t.Errorf("exit codes %q, not %q", got, want)
	}
	l := &ledger{command: "label", done: 1, began: time.Now().Add(-1900 * time.Millisecond)}
	l.all.Seen, l.all.Written, l.all.Failed = 1203441, 1203440, 1
	r := metrics.Run{Command: l.command, Ended: time.UnixMilli(1700000000250), Paths: []metrics.Path{{
		Name: "/srv/volume", Elapsed: 1900 * time.Millisecond, Entries: []metrics.Count{{Result: "written", N: 1203441}},
	}}}
	written := "fastlabel: " + l.last(exitFailed) + "\n" + string(metrics.Text(r))
	lines := 0
	for line := range strings.Lines(blocks(page, "text")) {
		lines++
		if !strings.Contains(written, line) {
			t.Errorf("%q is not written:\n%s", line, written)
		}
	}
	if lines != 5 {
		t.Errorf("%d lines", lines)
	}
}
