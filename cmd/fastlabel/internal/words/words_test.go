// SPDX-License-Identifier: Apache-2.0

package words

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestFit(t *testing.T) {
	parts := []string{"1,234 of about 5,678 entries", "3 failed", "2 to 3 min left", "61,203/s"}
	for _, c := range []struct {
		room       int
		path, want string
	}{
		{200, "/p/d", `1,234 of about 5,678 entries, 3 failed, 2 to 3 min left, 61,203/s, "/p/d"`},
		{79, "/p/directory/deep", `1,234 of about 5,678 entries, 3 failed, 2 to 3 min left, 61,203/s, "…ory/deep"`},
		{75, "/p/directory/deep", `1,234 of about 5,678 entries, 3 failed, 2 to 3 min left, 61,203/s`},
		{39, "/p/d", `1,234 of about 5,678 entries, 3 failed`},
		{28, "/p/d", `1,234 of about 5,678 entries`},
		{27, "/p/d", `3 failed, 2 to 3 min left`},
		{3, "/p/d", ``},
	} {
		if got := Fit(parts, c.path, c.room); got != c.want {
			t.Errorf("%d columns:\n%s\n%s", c.room, got, c.want)
		}
	}
	for path, want := range map[string]string{
		"/a/b": `"/a/b"`, "/0123456789abcdef": `"…789abcdef"`,
		"/日本語日本語日本語": `"…語日本語"`, "/日本語日本": `"/日本語日本"`, "/e\u0301\u0301\u0301e\u0301": "\"/e\u0301\u0301\u0301e\u0301\"",
	} {
		if got := Tail(path, 13); got != want {
			t.Errorf("%q: %s, not %s", path, got, want)
		}
	}
}

// hostile names hold what a terminal must not see, or what takes room that
// does not show.
var hostile = []string{
	"\x1b[31mred", "\x1b]0;title\x07", "new\nline", "back\rspace\b", "\u202edrow", "\u2066x\u2069", "\xff\xfe", "\x9b31m", "\u009b31m",
	strings.Repeat("\u0301", 3000), strings.Repeat("日本", 2000), strings.Repeat("a\u200d", 500), "\u200d\u200d", strings.Repeat("\xf0", 900),
	"👩‍👩‍👧‍👦👩‍👩‍👧‍👦", "é\u00ad\u2028", "\x00", "ﷺ", "\U000e0001", strings.Repeat("/x", 60000),
}

// wide returns how many columns a line takes where Asian characters and pictures take two.
func wide(line string) (n int) {
	for _, r := range line {
		n++
		if r >= 0x1100 {
			n++
		}
	}
	return n
}

// A line is as wide as it may be at most, and shows nothing raw.
func TestFitHostile(t *testing.T) {
	for _, name := range hostile {
		for room := 1; room < 90; room++ {
			line := Fit([]string{"1 entries", "5/s"}, "/p/"+name, room)
			if w := wide(line); w > room || len(line) > 8*room+20 {
				t.Errorf("%.40q in %d columns takes %d, and %d bytes", name, room, w, len(line))
			}
			if !utf8.ValidString(line) || strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
				t.Errorf("%.40q in %d columns is raw: %q", name, room, line)
			}
		}
	}
}

// A shell makes of the line what it was made of, and a terminal shows all of it.
func TestForShell(t *testing.T) {
	words := append([]string{
		"", "plain", "-l=s0:c1,c2", "a b", "it's", `back\slash`, "$HOME `id` $(id)", "*?[a]", "~", "=ls", "{a,b}", "!x", "a\tb", "né", "日本", "#", "a;b&c|d>e", "'", `\'`, "\n'\\", "\x01" + "1",
	}, hostile[:10]...)
	for _, w := range words {
		w = strings.ReplaceAll(w, "\x00", "")
		got := Shell(w)
		if Clean(got) != got {
			t.Errorf("%q: raw: %q", w, got)
		}
		for _, shell := range []string{"bash", "sh"} {
			if shell == "sh" && strings.HasPrefix(got, "$'") {
				continue // where sh is dash
			}
			out, err := exec.Command(shell, "-c", "printf %s "+got).Output()
			if err != nil || string(out) != w {
				t.Errorf("%s reads %s as %q, not %q: %v", shell, got, out, w, err)
			}
		}
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"/a b/é": "/a b/é", "": `""`, " a": `" a"`, "a\x1b[m": `"a\x1b[m"`, "a\xff": `"a\xff"`,
		`"a"`: `"\"a\""`, `a\n`: `"a\\n"`, "\u202ea": `"\u202ea"`,
	} {
		if got := Plain(in); got != want {
			t.Errorf("plain(%q) is %s, not %s", in, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1203441: "1,203,441"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
	for n, want := range map[int64]string{0: "0 entries", 1: "1 entry", 2000: "2,000 entries"} {
		if got := Count(n, "entry", "entries"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
