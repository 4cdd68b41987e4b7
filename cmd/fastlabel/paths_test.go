// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestGlob: patterns match what glob(3) has for restorecon.
func TestGlob(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, p := range []string{"lib/plocate/db", "lib/plocate2/db", "lib/other/f", "lib/.hidden/f", "lib/a*b", "lib/a]b", "lib/axb", "lib/[x", "lib/{p,q}", "lib/a,b", "lib/x y", `lib/b\c`} {
		treetest.Must(t, os.MkdirAll(filepath.Dir(p), 0o700))
		treetest.Must(t, os.WriteFile(p, nil, 0o600))
	}
	for pattern, want := range map[string]string{
		"lib/ploc*":                      "lib/plocate lib/plocate2",
		"lib/ploc*/":                     "lib/plocate/ lib/plocate2/",
		"lib/*/db":                       "lib/plocate/db lib/plocate2/db",
		"l*b/?[lt]*":                     "lib/other lib/plocate lib/plocate2",
		"lib/*hidden":                    "lib/.hidden",
		"lib/.*":                         "lib/.hidden",
		"lib/a*b":                        "lib/a*b", // by its name
		`lib/a\*b`:                       "lib/a*b",
		"lib/a[!,*]b":                    "lib/a]b lib/axb",
		"lib/a[[:alpha:]]b":              "lib/a[[:alpha:]]b",
		"lib/[[]x":                       "lib/[x",
		"lib/[x":                         "lib/[x",
		"lib/b?c":                        `lib/b\c`,
		"lib/{p,q}":                      "lib/{p,q}",
		"lib/{other,plocate{2,},gone}/*": "lib/other/f lib/plocate2/db lib/plocate/db",
		"{lib/x*,{}":                     "{lib/x*,{}",
		"lib/gone*":                      "lib/gone*",
		"lib/f/*":                        "lib/f/*",
		"lib/[b-a]*":                     "lib/[b-a]*",
		`lib/x\ y`:                       "lib/x|y",
	} {
		got := glob(pattern)
		if got := strings.ReplaceAll(strings.Join(got, " "), "x y", "x|y"); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}
