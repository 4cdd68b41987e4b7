// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// changes are labels, what the policy wants, and what is written: of the type alone,
// and of all. TestChangeOracle asks libselinux the same.
var changes = []struct{ have, want, typ, all string }{
	{"u:r:a_t:s0", "u:r:a_t:s0", "", ""},
	{"u:r:a_t:s0", "v:s:b_t:s1:c1,c2", "u:r:b_t:s0", "v:s:b_t:s1:c1,c2"},
	{"u:r:a_t:s0-s1:c1.c3", "u:r:b_t:s0", "u:r:b_t:s0-s1:c1.c3", "u:r:b_t:s0"},
	{"u:r:a_t:s0:c1", "v:r:a_t:s0", "", "v:r:a_t:s0"},
	{"u:r:a_t", "v:r:b_t:s0", "u:r:b_t", "v:r:b_t:s0"},
	{"u:r:a_t:s0", "v:r:b_t", "u:r:b_t:s0", "v:r:b_t"},
	{"u:r:a_t:s 0", "v:r:b_t:s0", "u:r:b_t:s 0", "v:r:b_t:s0"},
	{"", "v:r:b_t:s0", "v:r:b_t:s0", "v:r:b_t:s0"},
	{"rubbish", "v:r:b_t:s0", "error", "v:r:b_t:s0"},
	{"u:r", "v:r:b_t:s0", "error", "v:r:b_t:s0"},
	{"u r:r:a_t:s0", "v:r:b_t:s0", "error", "v:r:b_t:s0"},
	{"u:r:a_t:s0\n", "v:r:b_t:s0", "error", "v:r:b_t:s0"},
	{"u:r:a_t:s0:c1-s0:c1:c2", "v:r:b_t:s0", "error", "v:r:b_t:s0"},
	{"u:r:a_t:s0", "rubbish", "error", "rubbish"},
}

// say is what Change returned, in the words of the table.
func say(label string, custom bool, err error) string {
	switch {
	case err != nil:
		return "error"
	case custom:
		return "customizable"
	}
	return label
}

func TestChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "contexts/files/file_contexts")
	treetest.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	none, err := LoadCustomizable(file)
	if err != nil || len(none) > 0 {
		t.Fatalf("without a list: %v, %v", none, err)
	}
	for _, c := range changes {
		if typ, all := say(none.Change(c.have, c.want, false)), say(none.Change(c.have, c.want, true)); typ != c.typ || all != c.all {
			t.Errorf("from %q to %q: %q, with -F %q; want %q and %q", c.have, c.want, typ, all, c.typ, c.all)
		}
	}

	treetest.Must(t, os.WriteFile(filepath.Join(filepath.Dir(file), "../customizable_types"), []byte("a_t\nspace_t \n"), 0o600))
	custom, err := LoadCustomizable(file)
	treetest.Must(t, err)
	for have, want := range map[string]string{"u:r:a_t:s0": "customizable", "u:r:a_t:s1": "customizable", "u:r:space_t:s0": "u:r:b_t:s0", "u:r:c_t:s0": "u:r:b_t:s0", "rubbish": "error"} {
		if got := say(custom.Change(have, "v:r:b_t:s1", false)); got != want {
			t.Errorf("%s, where a_t is customizable: %q, want %q", have, got, want)
		}
		if got := say(custom.Change(have, "v:r:b_t:s1", true)); got != "v:r:b_t:s1" {
			t.Errorf("%s with -F: %q", have, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _, _ = custom.Change("u:r:b_t:s0", "u:r:b_t:s0", false) }); n > 0 {
		t.Errorf("%v allocations for a right label", n)
	}
}
