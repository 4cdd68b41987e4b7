// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/mutants"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestBroken shows that the tests in the machine can fail. Each mutant that names a
// test of package inside is built, with those tests, and must fail that one, in both
// kernels. The control is what stands here: it passes all of those.
func TestBroken(t *testing.T) {
	m := image(t)
	all := slices.DeleteFunc(mutants.All(), func(m mutants.Mutant) bool { return m.Inside == "" })
	if len(all) < 6 {
		t.Fatalf("%d mutants", len(all))
	}
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
		overlay, err := b.Overlay(house, t.TempDir())
		treetest.Must(t, err)
		files[b.Name+"/inside.test"] = build(t, ".", "./inside", true, "-overlay", overlay)
		files[b.Name+"/fastlabel"] = build(t, house, "./cmd/fastlabel", false, "-overlay", overlay)
		try(b.Name, b.Inside)
		if !slices.Contains(tests, b.Inside) {
			tests = append(tests, b.Inside)
		}
	}
	for _, test := range tests {
		try("control", test)
	}
	for _, k := range m.Kernels {
		t.Run(k.Release, func(t *testing.T) {
			t.Parallel()
			r := m.Run(t, k, Command{Args: []string{"sh", "-c", script.String()}, Files: files, Timeout: 30 * time.Minute})
			said := map[string]string{}
			for part := range strings.SplitSeq(r.Stdout, "=== TRY ") {
				name, out, _ := strings.Cut(part, "\n")
				said[name] = out
			}
			expect := func(name, test, word string) {
				if out := said[name+" "+test]; !strings.Contains(out, "--- "+word+": "+test+" (") {
					t.Errorf("%s: no %s of %s:\n%s\nstderr:\n%s", name, word, test, tail(out, 60), tail(r.Stderr, 20))
				}
			}
			for _, b := range all {
				expect(b.Name, b.Inside, "FAIL")
			}
			for _, test := range tests {
				expect("control", test, "PASS")
			}
		})
	}
}
