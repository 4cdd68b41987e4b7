// SPDX-License-Identifier: Apache-2.0

package man

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/fastlabel/fastlabel/test/treetest"
)

type value struct{ pflag.Value }

func (value) String() string { return "" }
func (value) Type() string   { return "a'b" }

// What roff takes for a request, an escape or a typographic character reaches the
// reader as it was written, wherever it stands.
func TestRoff(t *testing.T) {
	treetest.Need(t, "man")
	hostile := []string{
		`.SH X`, `'ps X`, `\fBx\fR \(aq \n(.x`, `-e "it's" -- --x=-1`, "`a` ^b ~c", `"`, `\`, `.`, `...`, `s0:c1,c2 *-`,
	}
	group := pflag.NewFlagSet("'Group'", pflag.ContinueOnError)
	group.VarP(value{}, "lev", "l", `.is it -1 \e?`)
	p := Page{
		Name: "fastlabel-x", About: `sets '\f' -y`, Synopsis: []string{`fastlabel x [--a 'b'] [\c]`, "fastlabel x --help"},
		Groups:  []*pflag.FlagSet{group},
		Text:    []string{"Lines:\n  " + strings.Join(hostile, "\n  ") + "\n", "First.\n" + strings.Join(hostile, "\n") + "\n"},
		Example: "  .x 'y' \\z -1\n", SeeAlso: []string{"fastlabel", "fastlabel-y"}, Version: `1 "2"`, Date: time.Unix(0, 0),
	}
	file := filepath.Join(t.TempDir(), "x.1")
	if err := os.WriteFile(file, []byte(p.Roff()), 0o600); err != nil {
		t.Fatal(err)
	}
	out := treetest.Man(t, file)
	page := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{
		`fastlabel-x - sets '\f' -y`, `fastlabel x [--a 'b'] [\c] fastlabel x --help`, `'Group'`, `-l, --lev a'b .is it -1 \e?`,
		"First. " + strings.Join(hostile, " "), `.x 'y' \z -1`, "fastlabel(1), fastlabel-y(1)", `fastlabel 1 "2"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("not on the page: %s", want)
		}
	}
	if _, lines, found := strings.Cut(out, "LINES\n"); !found || !strings.HasPrefix(strings.Join(strings.Fields(lines), " "), strings.Join(hostile, " ")) {
		t.Error("lines that are to stay as they are did not")
	}
	if t.Failed() {
		t.Logf("%s\n%s", p.Roff(), out)
	}
}
