// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"regexp"
	"testing"
)

// masks are what is another at each run: times, rates, how far it was, and
// where. How many entries a volume has, were written or failed stays.
var masks = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`[\d,]+( of at most [\d,]+) \(\d+%\)`), "#$1 (#%)"},
	{regexp.MustCompile(`(?m)^[\d,]+( entries, \d+ failed, .* elapsed)`), "#$1"},
	{regexp.MustCompile(`[\d,]+/s\b`), "#/s"},
	{regexp.MustCompile(`, \d+\.\d+ s\b`), ", # s"},
	{regexp.MustCompile(`\d+:\d\d (elapsed|left)`), "#:## $1"},
	{regexp.MustCompile(`(?m), "(pv|…)[^"\n]*"$`), ""}, // there is room for it or not
}

// stopped is what is another where a run was stopped at another time.
var stopped = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`[\d,]+ written, [\d,]+ right, `), "# written, # right, "},
	{regexp.MustCompile(`(incomplete \(.*\)), [\d,]+ entries, [\d,]+ written, `), "$1, # entries, # written, "},
	{regexp.MustCompile(`(at least [\d,]+ directories and )?at most [\d,]+ entries left`), "at least # directories and at most # entries left"},
}

func masked(screen string) string {
	for _, m := range masks {
		screen = m.what.ReplaceAllString(screen, m.by)
	}
	return screen
}

func maskedStop(screen string) string {
	screen = masked(screen)
	for _, m := range stopped {
		screen = m.what.ReplaceAllString(screen, m.by)
	}
	return screen
}

// scaled is without the numbers of a volume's size, and of its rate: for a run
// with fewer files than the screens in testdata are of.
func scaled(screen string) string {
	return regexp.MustCompile(`\d{1,3}(,\d{3})+|rate[ =]\d+`).ReplaceAllString(screen, "#")
}

func TestMask(t *testing.T) {
	for screen, want := range map[string]string{
		`412,345 of at most 1,000,052 (41%), 1 failed, 0:04 elapsed, at most 0:07 left, 99,990/s, "pv/d0412"`: `# of at most 1,000,052 (#%), 1 failed, #:## elapsed, at most #:## left, #/s`,
		"412,345 entries, 1 failed, 0:04 elapsed":                                                             "# entries, 1 failed, #:## elapsed",
		"pv: 1,001,002 entries, 12 written, 3 right, 1 failed, 10.1 s":                                        "pv: 1,001,002 entries, 12 written, 3 right, 1 failed, # s",
	} {
		if got := masked(screen); got != want {
			t.Errorf("%s\n%s, want\n%s", screen, got, want)
		}
	}
	// The control: what must not be lost.
	if masked("pv: 10 entries, 1 failed") == masked("pv: 10 entries, 2 failed") {
		t.Error("failures are masked")
	}
}
