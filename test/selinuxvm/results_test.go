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
type cell struct{ check, filesystem, suite string }

// tableOf counts the results of each check on each kernel and filesystem.
type tableOf struct {
	mu      sync.Mutex
	image   *Image
	checks  []string // in the order in which they came
	count   map[cell]map[string]int
	begin   time.Time
	reasons []string // why something was not run, or did not do all
}

var table = tableOf{begin: time.Now(), count: map[cell]map[string]int{}}

// filesystems are the columns of each kernel. What belongs to none of them, or
// uses whichever it likes, is under "-".
var filesystems = []string{"-", "ext4", "xfs", "btrfs", "tmpfs"}

// marks are how the words of results stand in a cell, behind their number.
var marks = []struct{ word, mark string }{{"pass", ""}, {"fail", "F"}, {"skip", "S"}, {"excepted", "x"}, {"dead", "D"}}

// add counts a result, under a word of marks.
func (tb *tableOf) add(m *Image, k Kernel, pkg, test, word string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.image = m
	top, rest, _ := strings.Cut(test, "/")
	c := cell{check: pkg + " " + top, filesystem: "-", suite: k.Suite}
	for part := range strings.SplitSeq(rest, "/") {
		if name, _, _ := strings.Cut(part, "_"); slices.Contains(filesystems, name) {
			c.filesystem = name
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

// print writes a line for each check, with a column for each kernel and
// filesystem.
func (tb *tableOf) print() error {
	if tb.image == nil {
		return nil
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "fastlabel %s, SELinux enforcing, %s, %d s\n", version(), time.Now().UTC().Format("2006-01-02 15:04 MST"),
		int(time.Since(tb.begin).Seconds()))
	qemu, _, _ := strings.Cut(output("qemu-system-x86_64", "--version"), "\n")
	fmt.Fprintf(&out, "selinux-policy-default %s; %s; image made %s\n", tb.image.Policy, qemu, tb.image.Made.Format("2006-01-02"))
	for _, k := range tb.image.Kernels {
		fmt.Fprintf(&out, "Linux %s of %s\n", k.Release, k.Suite)
	}
	w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "\ncheck")
	for _, k := range tb.image.Kernels {
		for _, f := range filesystems {
			fmt.Fprintf(w, "\t%s %s", k.short(), f)
		}
	}
	fmt.Fprintln(w)
	sums := map[string]int{}
	for _, check := range tb.checks {
		line := check
		for _, k := range tb.image.Kernels {
			for _, f := range filesystems {
				line += "\t" + tb.words(cell{check, f, k.Suite}, sums)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&out, "\n%d checks: %d passed, %dF failed, %dS skipped, %dx excepted, %dD broken on purpose and noticed\n",
		len(tb.checks), sums["pass"], sums["fail"], sums["skip"], sums["excepted"], sums["dead"])
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

// words are the numbers of a cell, which it adds to sums.
func (tb *tableOf) words(c cell, sums map[string]int) string {
	var words []string
	for _, m := range marks {
		if n := tb.count[c][m.word]; n > 0 {
			words = append(words, fmt.Sprint(n, m.mark))
			sums[m.word] += n
		}
	}
	return strings.Join(words, " ")
}

// short is a kernel's version as people say it.
func (k Kernel) short() string {
	parts := strings.SplitN(k.Release, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
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
