// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// broken is an engine that is broken on purpose, as a patch of broken/ says. Its
// first two lines are
//
//	Dies by: the test of package inside that fails
//	Breaks: the sentence that is not true of it
type broken struct{ name, file, test, breaks string }

var header = regexp.MustCompile(`^Dies by: (Test\S+)\nBreaks: (.+)\n--- `)

// readBroken reads the patches; each must apply to what stands here.
func readBroken(t *testing.T) []broken {
	t.Helper()
	files, err := filepath.Glob("broken/*.patch")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d patches: %v", len(files), err)
	}
	var all []broken
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := header.FindStringSubmatch(string(text))
		if m == nil {
			t.Fatalf("%s: its first lines do not say what it dies by, and what it breaks", file)
		}
		file := absolute(t, file)
		if out, err := exec.Command("git", "-C", house, "apply", "--check", file).CombinedOutput(); err != nil {
			t.Errorf("%s is stale: %s", file, out)
		}
		all = append(all, broken{strings.TrimSuffix(filepath.Base(file), ".patch"), file, m[1], m[2]})
	}
	return all
}

func absolute(t *testing.T, file string) string {
	t.Helper()
	file, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPatches: what TestBroken needs is there, where no machine is booted.
func TestPatches(t *testing.T) { readBroken(t) }

// TestBroken shows that the tests in the machine can fail. Each engine that is
// broken on purpose is built, with the tests of package inside, and must fail the
// one that its patch names, in both kernels. The control is what stands here: it
// passes all of those.
func TestBroken(t *testing.T) {
	m := image(t)
	all := readBroken(t)
	files := map[string]string{
		"control/inside.test": build(t, ".", "./inside", true),
		"control/fastlabel":   build(t, house, "./cmd/fastlabel", false),
	}
	var script strings.Builder
	try := func(name, test string) {
		fmt.Fprintf(&script, "echo '=== TRY %s %s'; FASTLABEL_COMMAND=/payload/%[1]s/fastlabel /payload/%[1]s/inside.test -test.v -test.timeout=5m '-test.run=^%[3]s$'\n",
			name, test, strings.ReplaceAll(test, "/", "$/^"))
	}
	var tests []string
	for _, b := range all {
		dir := breakHouse(t, b)
		files[b.name+"/inside.test"] = build(t, filepath.Join(dir, "test/selinuxvm"), "./inside", true)
		files[b.name+"/fastlabel"] = build(t, dir, "./cmd/fastlabel", false)
		try(b.name, b.test)
		if !slices.Contains(tests, b.test) {
			tests = append(tests, b.test)
		}
	}
	for _, test := range tests {
		try("control", test)
	}
	for _, k := range m.Kernels {
		t.Run(k.Release, func(t *testing.T) {
			t.Parallel()
			r, err := m.Run(t.Context(), k, Command{Args: []string{"sh", "-c", script.String()}, Files: files, Timeout: 30 * time.Minute})
			if err != nil {
				t.Fatalf("%v\nstdout's end:\n%s", err, tail(r.Stdout, 40))
			}
			said := map[string]string{}
			for part := range strings.SplitSeq(r.Stdout, "=== TRY ") {
				name, out, _ := strings.Cut(part, "\n")
				said[name] = out
			}
			expect := func(name, test, word, as string) {
				t.Run(name+" "+test, func(t *testing.T) {
					out := said[name+" "+test]
					i := slices.IndexFunc(parseResults(out), func(r result) bool { return r.name == test })
					if i < 0 || parseResults(out)[i].word != word {
						t.Errorf("no %s:\n%s\nstderr:\n%s", word, tail(out, 60), tail(r.Stderr, 20))
					} else if word == "FAIL" {
						t.Log(tail(parseResults(out)[i].said, 5))
					}
					if t.Failed() {
						as = "fail"
					}
				})
				table.add(m, k, "broken", name+" by "+strings.ReplaceAll(test, "/", " "), as)
			}
			for _, b := range all {
				expect(b.name, b.test, "FAIL", "dead")
			}
			for _, test := range tests {
				expect("control", test, "PASS", "pass")
			}
		})
	}
	for _, b := range all {
		table.reason("broken " + b.name + ": it is no longer true that " + b.breaks)
	}
}

// breakHouse makes a copy of what the builds need, with the patch.
func breakHouse(t *testing.T, b broken) string {
	t.Helper()
	dir := t.TempDir()
	for name, from := range houseFiles(t) {
		name = strings.TrimPrefix(name, "house/")
		first, _, _ := strings.Cut(name, "/")
		if !slices.Contains([]string{"go.mod", "go.sum", "relabel", "cmd", "test"}, first) {
			continue
		}
		if _, err := copyFile(filepath.Join(dir, name), from); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", "apply", b.file)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %s", b.name, out)
	}
	return dir
}
