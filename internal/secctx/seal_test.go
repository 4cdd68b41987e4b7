// SPDX-License-Identifier: Apache-2.0

package secctx

import (
	"slices"
	"testing"
)

const file = ":object_r:container_file_t:"

// sealCases are relabels and the seals that they may have.
var sealCases = []struct {
	old, want string
	seals     []string
}{
	{"", "system_u" + file + "s0", []string{"unconfined_u" + file + "s0", "root" + file + "s0", "staff_u" + file + "s0"}},
	// Never system_u: runtimes ask for it.
	{"", "unconfined_u" + file + "s0", []string{"root" + file + "s0", "staff_u" + file + "s0"}},
	{"", "user_u" + file + "s0", []string{"unconfined_u" + file + "s0", "root" + file + "s0", "staff_u" + file + "s0"}},
	// Whatever the old label is, one is left.
	{"unconfined_u" + file + "s0", "system_u" + file + "s0", []string{"root" + file + "s0", "staff_u" + file + "s0"}},
	{"unconfined_u" + file + "s0\x00", "system_u" + file + "s0", []string{"root" + file + "s0", "staff_u" + file + "s0"}},
	{"root" + file + "s0", "unconfined_u" + file + "s0", []string{"staff_u" + file + "s0"}},
	// A private label has one more.
	{"", "system_u" + file + "s0:c1,c2", []string{
		"unconfined_u" + file + "s0:c1,c2", "root" + file + "s0:c1,c2", "staff_u" + file + "s0:c1,c2", "system_u" + file + "s0:c1022,c1023",
	}},
	{"system_u" + file + "s0:c1022,c1023", "system_u" + file + "s0:c1,c2", []string{
		"unconfined_u" + file + "s0:c1,c2", "root" + file + "s0:c1,c2", "staff_u" + file + "s0:c1,c2",
	}},
	{"", "system_u" + file + "s0:c1022,c1023", []string{
		"unconfined_u" + file + "s0:c1022,c1023", "root" + file + "s0:c1022,c1023", "staff_u" + file + "s0:c1022,c1023",
	}},
	{"", "root" + file + "s1-s3:c4", []string{
		"unconfined_u" + file + "s1-s3:c4", "staff_u" + file + "s1-s3:c4", "root" + file + "s3:c1022,c1023",
	}},
	// An old label in another form is the same label.
	{"unconfined_u" + file + "s0:c1,c2,c3", "root" + file + "s0:c3,c2,c1", []string{
		"staff_u" + file + "s0:c1.c3", "root" + file + "s0:c1022,c1023",
	}},
	{"rubbish", "u:r:t", []string{"unconfined_u:r:t", "root:r:t", "staff_u:r:t"}},
	{"", "container_file_t", nil},
	{"", "", nil},
}

func TestSeals(t *testing.T) {
	for _, c := range sealCases {
		if got := Seals(c.old, c.want); !slices.Equal(got, c.seals) {
			t.Errorf("Seals(%q, %q)\n got %q\nwant %q", c.old, c.want, got, c.seals)
		}
	}
}

// FuzzSeal: for any two labels there is a seal, which is neither of them,
// however they are spelt, and is known as a seal of the wanted one: by IsSeal,
// and by its form.
func FuzzSeal(f *testing.F) {
	for _, c := range sealCases {
		f.Add(c.old, c.want, code(), code())
	}
	private := code("system_u:object_r:container_file_t:", "s0", ":", "c1", ",", "c2")
	f.Add("", shared+"\x00", code(), private)
	f.Add("", "", private, private)
	f.Add("system_u:object_r:container_file_t:s0:c1022.c1023", "", code(), private)
	f.Add("system_u:object_r:container_file_t", "system_u:object_r:container_file_t", code(":s0:", "c1022", ".", "c1023"), code(":s0:", "c1022", ",", "c1023"))
	f.Add("system_u:object_r:container_file_t:s0:c1022,c1023", shared, code(), code())
	f.Add("unconfined_u:object_r:container_file_t:s0:c1.c3", shared+":c1,c2,c3", code(), code())
	f.Add("unconfined_u:object_r:container_file_t:s0:c1,c2", shared+":c1,c3", code(), code())
	f.Add("unconfined_u:object_r:container_file_t:s0\x00\x00", shared, code(), code())
	f.Add("u:r:t:s1-s0", "root:object_r:t:s1-s3:c4", code(), code(",", "c64"))
	f.Fuzz(func(t *testing.T, old, want string, oldCode, wantCode []byte) {
		old += assemble(oldCode)
		want += assemble(wantCode)
		canonical, err := Canonical(want)
		list := Seals(old, want)
		if err != nil {
			if list != nil {
				t.Fatalf("Seals(%q, %q) = %q for what is no label", old, want, list)
			}
			return
		}
		if again := Seals(old, canonical); !slices.Equal(list, again) {
			t.Fatalf("Seals(%q, %q) = %q, spelt as the kernel does %q", old, want, list, again)
		}
		oldCanonical, _ := Canonical(old)
		for _, s := range list {
			if s == canonical || s == oldCanonical || s+"\x00" == old || !IsSeal(s+"\x00", want) {
				t.Fatalf("Seals(%q, %q) has %q", old, want, s)
			}
			// Nor is it trusted for want by the next run.
			if Same([]byte(s), canonical) || IsSeal(canonical, want) {
				t.Fatalf("%q is taken for %q", s, canonical)
			}
		}

		if len(canonical) > longest-len("unconfined_u") {
			return // few seals are short enough, or none
		}
		// Runs that are interrupted one after another, each of which finds the
		// seal of the one before.
		for have, n := old, 0; n < 4; n++ {
			next := Seals(have, want)
			if len(next) == 0 || next[0] == have || next[0] == canonical || !IsSeal(next[0], want) {
				t.Fatalf("run %d to %q finds %q and has the seals %q", n, want, have, next)
			}
			have = next[0]
		}
	})
}
