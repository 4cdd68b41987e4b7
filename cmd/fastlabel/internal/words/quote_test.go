// SPDX-License-Identifier: Apache-2.0

package words

import "testing"

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
