// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// What tired hands type writes no label, and the answer says what was meant.
func TestMistyped(t *testing.T) {
	treetest.Need(t, "root", "plain")
	t.Chdir(t.TempDir())
	for _, dir := range []string{"pv/sub", "labels"} {
		treetest.Must(t, os.MkdirAll(dir, 0o700))
	}
	treetest.Must(t, os.WriteFile("list", []byte("pv\npw\n"), 0o600))
	before := treetest.Read(t, ".")
	const label = "system_u:object_r:container_file_t:s0"
	all := calls(
		"verfy pv", "porbe pv", "verify_ pv", "restorcon pv", "hepl", "vresion", "pv verify", "-vl s0 verify pv", "pvv", "pv pw px",
		label+" pv", "unconfined_u:object_r:user_home_t pv", "labels pv", "labels", "label", "probe verfy pv",
		"-quiet pv", "-e -quiet pv", "-dry-run pv", "-type=usr_t pv", "-n -verbose pv", "--quite pv", "--dryrun pv", "--recursiv pv",
		"-f list", "pv/sub/none", "list/", "-e none pv pv/sub", "-e labels pv", "-f none", "-f pv",
		"--reference none pv", "--reference list pv", "-hR "+label+" pv", "-Rh pv",
		"-t "+label+" pv", "-l "+label+" pv", "s0:c1,c2 pv", "–n pv", "-l pv/sub", "verify --type pv/sub",
		"-t -n pv", "-t --dry-run pv", "-vt -l pv", "--role -x pv", "verify -t -q pv", "-t -- pv", "-e --max-rate 5 pv",
	)
	got := transcript(real(), all)
	golden(t, "mistyped", alike(got))
	if n := strings.Count(got, "\nexit 2\n"); n != len(all) {
		t.Errorf("%d of %d exit with 2", n, len(all))
	}
	if d := treetest.Diff(before, treetest.Read(t, ".")); len(d) > 0 {
		t.Error(d)
	}
}

// What people type who know chcon, and other commands, is understood.
func TestTypedOtherwise(t *testing.T) {
	var done []string
	a := fake()
	a.lstat = func(string) (fs.FileInfo, error) { return nil, nil }
	tree := a.tree
	a.tree = func(ctx context.Context, root, label string, o *relabel.Options, check bool) (relabel.Report, error) {
		done = append(done, root)
		return tree(ctx, root, label, o, check)
	}
	for line, want := range map[string]string{
		"label /one": "/one", "-R /one": "/one", "-Rv /one": "/one", "-rq /one": "/one", "--recursive label /one": "/one",
		"label labels": "labels", "-- labels": "labels", "-- probe": "probe", "./labels": "./labels", "-- u:r:t:s0": "u:r:t:s0", "/a:b:c": "/a:b:c",
		"--exclude=./-quiet /one": "/one", "-- -quiet": "-quiet", "verify -r /one": "/one",
	} {
		done = nil
		if text := transcript(a, calls(line)); strings.Join(done, " ") != want {
			t.Errorf("did %q:\n%s", done, text)
		}
	}
	plain := func(line string) string {
		_, text, _ := strings.Cut(transcript(a, calls(line)), "\n")
		return text
	}
	for line, as := range map[string]string{
		"-V": "version", "--version": "version", "-h": "--help",
		"help": "--help", "help probe": "probe --help", "help help": "--help", "help label": "--help",
	} {
		if got, want := plain(line), plain(as); got != want || got == "" {
			t.Errorf("%s:\n%s\nand %s:\n%s", line, got, as, want)
		}
	}
}

// Each PATH of a list is looked up once.
func TestLookUpOnce(t *testing.T) {
	const n = 100000
	looks, a := 0, fake()
	a.lstat = func(string) (fs.FileInfo, error) { looks++; return nil, nil }
	a.inspect = func(string, string, relabel.Skip) (relabel.RootState, error) {
		return relabel.RootState{Labelled: true}, nil
	}
	var list strings.Builder
	for i := range n {
		list.WriteString("/" + strconv.Itoa(i) + "\n")
	}
	text := transcript(a, []call{{[]string{"probe", "-q", "-f", "-"}, list.String()}})
	if looks != n || !strings.HasSuffix(text, "exit 0\n\n") {
		t.Errorf("%d looks for %d: %s", looks, n, text)
	}
}

// One who ends the command while PATHs are looked up is not told that they hang.
func TestLookUpEnded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(exit.Signal{Sig: os.Interrupt})
	var said string
	for range 20 { // on a machine that is busy a look may take long
		var text strings.Builder
		a := fake()
		a.lstat = func(string) (fs.FileInfo, error) { return nil, nil }
		if code := a.run(ctx, strings.NewReader(""), io.Discard, &text, []string{"/one"}); code != exit.Interrupted {
			t.Fatal(code)
		}
		if said = text.String(); said == "fastlabel: not begun: interrupted by SIGINT\n" {
			return
		}
	}
	t.Error(said)
}
