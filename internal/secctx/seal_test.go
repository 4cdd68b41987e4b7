// SPDX-License-Identifier: Apache-2.0

package secctx

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestSeals(t *testing.T) {
	const ort = ":object_r:container_file_t:"
	for _, c := range []struct {
		old, want string
		seals     []string
	}{
		{"", "system_u" + ort + "s0", []string{"unconfined_u" + ort + "s0", "root" + ort + "s0", "staff_u" + ort + "s0"}},
		// Never system_u: runtimes ask for it.
		{"", "unconfined_u" + ort + "s0", []string{"root" + ort + "s0", "staff_u" + ort + "s0"}},
		{"", "user_u" + ort + "s0", []string{"unconfined_u" + ort + "s0", "root" + ort + "s0", "staff_u" + ort + "s0"}},
		// Whatever the old label is, one is left.
		{"unconfined_u" + ort + "s0", "system_u" + ort + "s0", []string{"root" + ort + "s0", "staff_u" + ort + "s0"}},
		{"unconfined_u" + ort + "s0\x00", "system_u" + ort + "s0", []string{"root" + ort + "s0", "staff_u" + ort + "s0"}},
		{"root" + ort + "s0", "unconfined_u" + ort + "s0", []string{"staff_u" + ort + "s0"}},
		// A private label has one more.
		{"", "system_u" + ort + "s0:c1,c2", []string{
			"unconfined_u" + ort + "s0:c1,c2", "root" + ort + "s0:c1,c2", "staff_u" + ort + "s0:c1,c2", "system_u" + ort + "s0:c1022,c1023",
		}},
		{"system_u" + ort + "s0:c1022,c1023", "system_u" + ort + "s0:c1,c2", []string{
			"unconfined_u" + ort + "s0:c1,c2", "root" + ort + "s0:c1,c2", "staff_u" + ort + "s0:c1,c2",
		}},
		{"", "system_u" + ort + "s0:c1022,c1023", []string{
			"unconfined_u" + ort + "s0:c1022,c1023", "root" + ort + "s0:c1022,c1023", "staff_u" + ort + "s0:c1022,c1023",
		}},
		{"", "root" + ort + "s1-s3:c4", []string{
			"unconfined_u" + ort + "s1-s3:c4", "staff_u" + ort + "s1-s3:c4", "root" + ort + "s3:c1022,c1023",
		}},
		// An old label in another form is the same label.
		{"unconfined_u" + ort + "s0:c1,c2,c3", "root" + ort + "s0:c3,c2,c1", []string{
			"staff_u" + ort + "s0:c1.c3", "root" + ort + "s0:c1022,c1023",
		}},
		{"rubbish", "u:r:t", []string{"unconfined_u:r:t", "root:r:t", "staff_u:r:t"}},
		{"", "container_file_t", nil},
		{"", "", nil},
	} {
		if got := Seals(c.old, c.want); !slices.Equal(got, c.seals) {
			t.Errorf("Seals(%q, %q)\n got %q\nwant %q", c.old, c.want, got, c.seals)
		}
	}
}

func TestIsSeal(t *testing.T) {
	const ort = ":object_r:container_file_t:"
	for _, c := range []struct {
		have, want string
		is         bool
	}{
		{"unconfined_u" + ort + "s0", "system_u" + ort + "s0", true},
		{"unconfined_u" + ort + "s0\x00", "system_u" + ort + "s0", true},
		{"root" + ort + "s0", "system_u" + ort + "s0", true},
		{"system_u" + ort + "s0:c1022,c1023", "system_u" + ort + "s0:c1,c2", true},
		{"unconfined_u" + ort + "s0:c1.c3", "system_u" + ort + "s0:c1,c2,c3", true},

		{"system_u" + ort + "s0", "system_u" + ort + "s0", false},
		{"system_u" + ort + "s0", "unconfined_u" + ort + "s0", false},
		{"system_u" + ort + "s0:c1022,c1023", "system_u" + ort + "s0", false},
		{"unconfined_u:object_r:default_t:s0", "system_u" + ort + "s0", false},
		{"unconfined_u" + ort + "s0:c1,c2", "system_u" + ort + "s0:c1,c3", false},
		{"", "system_u" + ort + "s0", false},
		{"", "", false},
	} {
		if got := IsSeal(c.have, c.want); got != c.is {
			t.Errorf("IsSeal(%q, %q) = %v", c.have, c.want, got)
		}
	}
}

// brokenSeal names the first promise of Seals that list breaks.
func brokenSeal(list []string, old, want string) string {
	if len(list) == 0 && len(want) <= longest-len("unconfined_u") {
		return "none is left"
	}
	for i, s := range list {
		switch c, err := Canonical(s); {
		case err != nil || c != s:
			return "not canonical"
		case s == old || s == want:
			return "vouches"
		case strings.HasPrefix(s, "system_u:") && !strings.HasPrefix(want, "system_u:"):
			return "a label that runtimes ask for"
		case slices.Contains(list[:i], s):
			return "twice"
		case !IsSeal(s, want):
			return "not recognized"
		}
	}
	return ""
}

func TestSealsRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	label := func() string {
		users := []string{"system_u", "unconfined_u", "root", "staff_u", "user_u"}
		s := users[r.IntN(len(users))] + ":object_r:" + []string{"container_file_t", "default_t"}[r.IntN(2)]
		switch r.IntN(4) {
		case 0:
			return s
		case 1:
			return s + ":s0"
		case 2:
			return s + ":s0:c1022,c1023"
		}
		_, level := randomRange(r)
		return s + ":" + level
	}
	excluded := 0
	for range 5000 {
		old, want := label(), label()
		if r.IntN(4) == 0 { // an old label that is a seal
			old = Seals("", want)[0]
			excluded++
		}
		if b := brokenSeal(Seals(old, want), old, want); b != "" {
			t.Fatalf("Seals(%q, %q) = %q: %s", old, want, Seals(old, want), b)
		}
	}
	if excluded < 250 {
		t.Errorf("only %d of 5000 had a seal as the old label", excluded)
	}

	// The check can fail, at each promise.
	const want, old = shared, "unconfined_u:object_r:container_file_t:s0"
	const good = "root:object_r:container_file_t:s0"
	for _, c := range []struct {
		list   []string
		want   string
		broken string
	}{
		{[]string{good}, want, ""},
		{nil, want, "none is left"},
		{[]string{good + "-s0"}, want, "not canonical"},
		{[]string{good, old}, want, "vouches"},
		{[]string{want}, want, "vouches"},
		{[]string{want}, good, "a label that runtimes ask for"},
		{[]string{good, good}, want, "twice"},
		{[]string{"user_u:object_r:container_file_t:s0"}, want, "not recognized"},
	} {
		if b := brokenSeal(c.list, old, c.want); b != c.broken {
			t.Errorf("brokenSeal(%q, %q) = %q, want %q", c.list, c.want, b, c.broken)
		}
	}
}
