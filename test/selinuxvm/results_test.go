// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// result is what became of one test in the machine.
type result struct {
	name string
	word string // PASS, FAIL or SKIP
	said string // what it logged, with the lines of the source
}

var (
	runLine    = regexp.MustCompile(`^=== (RUN|NAME|CONT|PAUSE) +(\S+)$`)
	resultLine = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+) \([0-9.]+s\)$`)
)

// parseResults reads what a test binary with -test.v printed. A test whose
// subtests are there too is left out unless it failed and says why: they say
// the rest.
func parseResults(out string) []result {
	var all []result
	said := map[string]string{}
	now := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if m := runLine.FindStringSubmatch(line); m != nil {
			now = m[2]
			continue
		}
		if m := resultLine.FindStringSubmatch(line); m != nil {
			all = append(all, result{name: m[2], word: m[1]})
			now = m[2] // without subtests, what it said may stand behind
			continue
		}
		said[now] += strings.TrimSpace(line) + "\n"
	}
	for i := range all {
		all[i].said = said[all[i].name]
	}
	return slices.DeleteFunc(slices.Clone(all), func(r result) bool {
		return (r.word != "FAIL" || r.said == "") && slices.ContainsFunc(all, func(o result) bool { return strings.HasPrefix(o.name, r.name+"/") })
	})
}

// cell is where a result stands in the table.
type cell struct{ check, filesystem, kernel string }

// tableOf counts the results of each check on each kernel and filesystem.
type tableOf struct {
	mu      sync.Mutex
	image   *Image
	checks  []string // in the order in which they came
	count   map[cell]map[string]int
	begin   time.Time
	reasons []string // why something was not run, or may fail
}

var table = tableOf{begin: time.Now(), count: map[cell]map[string]int{}}

var filesystems = []string{"ext4", "xfs", "btrfs", "tmpfs"}

// add counts a result, under a word of the table: pass, fail, skip, excepted.
func (tb *tableOf) add(m *Image, k Kernel, pkg, test, word string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.image = m
	top, rest, _ := strings.Cut(test, "/")
	c := cell{check: pkg + " " + top, filesystem: "-", kernel: k.Suite}
	for part := range strings.SplitSeq(rest, "/") {
		if slices.Contains(filesystems, part) {
			c.filesystem = part
		}
	}
	if !slices.Contains(tb.checks, c.check) {
		tb.checks = append(tb.checks, c.check)
	}
	if tb.count[c] == nil {
		tb.count[c] = map[string]int{}
	}
	tb.count[c][word]++
}

// reason keeps a sentence for below the table.
func (tb *tableOf) reason(s string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if !slices.Contains(tb.reasons, s) {
		tb.reasons = append(tb.reasons, s)
	}
}

func (tb *tableOf) print() error {
	if tb.image == nil {
		return nil
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "fastlabel %s, SELinux enforcing, %s, %d s\n", version(), time.Now().UTC().Format("2006-01-02 15:04 MST"),
		int(time.Since(tb.begin).Seconds()))
	qemu, _, _ := strings.Cut(output("qemu-system-x86_64", "--version"), "\n")
	fmt.Fprintf(&out, "selinux-policy-default %s; %s; image made %s\n", tb.image.Policy, qemu, tb.image.Made.Format("2006-01-02"))
	w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "check\tfilesystem")
	for _, k := range tb.image.Kernels {
		fmt.Fprintf(w, "\tLinux %s", k.Release)
	}
	fmt.Fprintln(w)
	for _, check := range tb.checks {
		for _, filesystem := range append([]string{"-"}, filesystems...) {
			line, any := check+"\t"+filesystem, false
			for _, k := range tb.image.Kernels {
				words := tb.words(cell{check, filesystem, k.Suite})
				line, any = line+"\t"+words, any || words != ""
			}
			if any {
				fmt.Fprintln(w, line)
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range tb.reasons {
		fmt.Fprintln(&out, r)
	}
	if file := os.Getenv("FASTLABEL_RESULTS"); file != "" {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	_, err := os.Stdout.Write(out.Bytes())
	return err
}

func (tb *tableOf) words(c cell) string {
	var words []string
	for _, word := range []string{"pass", "fail", "skip", "excepted"} {
		if n := tb.count[c][word]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, word))
		}
	}
	return strings.Join(words, ", ")
}

func output(name string, args ...string) string {
	text, err := exec.Command(name, args...).Output()
	if err != nil {
		return name + ": " + err.Error()
	}
	return strings.TrimSpace(string(text))
}

func TestParseResults(t *testing.T) {
	got := parseResults(`=== RUN   TestA
=== RUN   TestA/ext4
    a_test.go:3: needs ext4: no
--- FAIL: TestA (0.10s)
    --- SKIP: TestA/ext4 (0.00s)
    --- FAIL: TestA/xfs (0.00s)
        a_test.go:9: no
=== RUN   TestB
    b_test.go:4: needs go: not found
--- SKIP: TestB (0.00s)
--- PASS: TestC (1.00s)
    --- PASS: TestC/one (1.00s)
FAIL
`)
	want := []result{
		{"TestA/ext4", "SKIP", "a_test.go:3: needs ext4: no\n"},
		{"TestA/xfs", "FAIL", "a_test.go:9: no\n"},
		{"TestB", "SKIP", "b_test.go:4: needs go: not found\n"},
		{"TestC/one", "PASS", "FAIL\n"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
