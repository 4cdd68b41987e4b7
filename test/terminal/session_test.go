// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// million is how many files the screens in testdata are of.
const million = 1_000_000

// golden holds a screen to testdata/NAME.txt, mask applied to both.
func golden(t *testing.T, name, screen string, mask func(string) string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	t.Logf("%s:\n%s", name, screen)
	got := mask(screen)
	if *update {
		if *files != million {
			t.Fatalf("-update wants -files %d", million)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	if *files != million {
		got, want = scaled(got), scaled(want)
	}
	if got != want {
		t.Errorf("%s: the screen is\n%s\nand was\n%s", name, screen, text)
	}
}

// A session: a volume is asked about, labelled, watched at 80 and 40 columns,
// interrupted, gone on with by the line that was printed; a file fails, is
// mended, and the rest is found right.
func TestSession(t *testing.T) {
	dir := volume(t, *files)
	stuck := filepath.Join(dir, "pv", "journal.lock")
	immutable(t, stuck)
	w := newTerminal(t, dir, filepath.Join(dir, "bin"), 80, 24)

	w.command("fastlabel probe -l s0:c35,c75 pv; echo exit $?", `exit \d+\n`+ended)
	golden(t, "1-probe", w.screen(), masked)

	// A tenth of the volume a second, so that there is time to look.
	w.command(fmt.Sprintf("fastlabel -l s0:c35,c75 --max-rate %d pv; echo exit $?", *files/10), `of at most .* failed, .* elapsed, [\d,]+/s`)
	golden(t, "2-begun", w.screen(), masked)
	w.until(`at most [\d:]+ left\n`)
	golden(t, "3-time-left", w.screen(), masked)
	w.resize(40)
	w.until(`(?m)^[\d,]+ entries, \d failed, [\d:]+ elapsed$`)
	golden(t, "4-narrow", w.screen(), masked)
	w.resize(80)
	w.until(`at most [\d:]+ left\n`)
	golden(t, "5-wide-again", w.screen(), masked)
	// Where a long line is broken depends on the numbers in it: from here on
	// they are put together.
	w.tmux("send-keys", "C-c")
	w.until(`exit \d+\n` + ended)
	golden(t, "6-interrupted", w.joined(), maskedStop)

	line := regexp.MustCompile(`(?m)^fastlabel: not done; to resume: (.*)$`).FindStringSubmatch(w.joined())
	if line == nil {
		t.Fatalf("no line that resumes:\n%s", w.joined())
	}
	w.command(line[1]+"; echo exit $?", `exit \d+\n`+ended)
	golden(t, "7-gone-on", w.joined(), maskedStop)
	w.command("lsattr pv/journal.lock; chattr -i pv/journal.lock", ended)
	w.command("fastlabel -l s0:c35,c75 pv; echo exit $?", `exit \d+\n`+ended)
	golden(t, "8-mended", w.joined(), masked)
	w.command("fastlabel verify -l s0:c35,c75 pv; echo exit $?", `exit \d+\n`+ended)
	golden(t, "9-verified", w.joined(), masked)

	// The line is gone whatever was done to it.
	if left := strings.Count(w.screen(), "elapsed"); left != 0 {
		t.Errorf("%d lines are left on the screen:\n%s", left, w.screen())
	}
}
