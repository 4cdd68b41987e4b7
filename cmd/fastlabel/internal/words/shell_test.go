// SPDX-License-Identifier: Apache-2.0

package words

import (
	"os/exec"
	"strings"
	"testing"
)

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
