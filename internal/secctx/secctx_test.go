// SPDX-License-Identifier: Apache-2.0

package secctx

import (
	"errors"
	"strings"
	"testing"
)

const shared = "system_u:object_r:container_file_t:s0"

func TestCanonical(t *testing.T) {
	const ort = "system_u:object_r:container_file_t"
	for _, c := range []struct{ label, want string }{
		{shared, shared},
		{shared + "\x00", shared},
		{ort, ort},
		{"u:object_r:app_data_file:s0:c123,c256,c512,c768", "u:object_r:app_data_file:s0:c123,c256,c512,c768"},
		{"User-1.x:r.a:T-9_t:s15", "User-1.x:r.a:T-9_t:s15"},

		// Categories are sorted and merged; runs of three and more shrink.
		{ort + ":s0:c0", ort + ":s0:c0"},
		{ort + ":s0:c75,c35", ort + ":s0:c35,c75"},
		{ort + ":s0:c1,c1", ort + ":s0:c1"},
		{ort + ":s0:c1,c2", ort + ":s0:c1,c2"},
		{ort + ":s0:c1.c2", ort + ":s0:c1,c2"},
		{ort + ":s0:c1,c2,c3", ort + ":s0:c1.c3"},
		{ort + ":s0:c3,c1,c2", ort + ":s0:c1.c3"},
		{ort + ":s0:c1.c3,c4,c9", ort + ":s0:c1.c4,c9"},
		{ort + ":s0:c1.c5,c3.c8", ort + ":s0:c1.c8"},
		{ort + ":s0:c0.c1023", ort + ":s0:c0.c1023"},
		{ort + ":s0:c62,c63,c64,c65", ort + ":s0:c62.c65"}, // across words of the set
		{ort + ":s0:c1023,c1022", ort + ":s0:c1022,c1023"},
		{ort + ":s0:c1021,c1022,c1023", ort + ":s0:c1021.c1023"},

		// Ranges.
		{ort + ":s0-s0", ort + ":s0"},
		{ort + ":s0-s15", ort + ":s0-s15"},
		{ort + ":s0:c2,c1-s0:c1,c2", ort + ":s0:c1,c2"},
		{ort + ":s0:c1.c3-s0:c1,c2,c3", ort + ":s0:c1.c3"},
		{ort + ":s0-s0:c0.c1023", ort + ":s0-s0:c0.c1023"},
		{ort + ":s0:c1-s0:c1,c2", ort + ":s0:c1-s0:c1,c2"},
		{ort + ":s1:c3-s2:c5,c4,c3", ort + ":s1:c3-s2:c3.c5"},
		{strings.Repeat("u", longest-1-len(":r:t:s0")) + ":r:t:s0", strings.Repeat("u", longest-1-len(":r:t:s0")) + ":r:t:s0"},
	} {
		got, err := Canonical(c.label)
		if err != nil || got != c.want {
			t.Errorf("Canonical(%s) = %q, %v; want %q", quoted(c.label), got, err, c.want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	const ort = "system_u:object_r:container_file_t"
	for _, c := range []struct {
		label, reason string
		bare          bool
	}{
		{"", "empty", false},
		{"container_file_t", "no colon", true},
		{"container/file", "no colon", false},
		{"s0:c1-s0:c1,c2", "only a level", false},
		{"object_r:container_file_t", "two fields", false},
		{":object_r:t:s0", "user is empty", false},
		{"u::t:s0", "role is empty", false},
		{"u:r::s0", "type is empty", false},
		{ort + ":", "not a sensitivity", false},

		// Bytes that no name has.
		{" " + shared, `byte 1 is " "`, false},
		{shared + "\n", `is "\n"`, false},
		{shared + "\x00\x00", `is "\x00"`, false},
		{"system_u\x00:object_r:t:s0", `byte 9 is "\x00"`, false},
		{"u:r:t\xc3\xa9:s0", `is "\xc3"`, false},
		{"u:r:a/b:s0", "not a name", false},

		// Levels.
		{ort + ":SystemLow", "mcstransd", false},
		{ort + ":s", "not a sensitivity", false},
		{ort + ":s16", "not a sensitivity", false},
		{ort + ":s18446744073709551616", "not a sensitivity", false},
		{ort + ":s0:", "not a category", false},
		{ort + ":s0:c01", "not a category", false},
		{ort + ":s0:c1024", "not a category", false},
		{ort + ":s0:c1.c3.c5", "not a category", false},
		{ort + ":s0:c1,,c2", "not a category", false},
		{ort + ":s0:c18446744073709551617", "not a category", false},
		{ort + ":s0:c5.c3", "does not ascend", false},
		{ort + ":s0:c1:c2", "more than one colon", false},
		{"a:b:c:s0:c1:c2:c3:c4:c5", "more than one colon", false},

		// Ranges.
		{ort + ":s0-", "not a sensitivity", false},
		{ort + ":s0-s1-s2", "not a sensitivity", false},
		{ort + ":s3-s1", "descends", false},
		{ort + ":s0:c1,c2-s0:c1", "lacks", false},
		{ort + ":s0:c1000-s15:c0.c999", "lacks", false},

		{strings.Repeat("u", longest-len(":r:t:s0")) + ":r:t:s0", "4096 bytes", false},
		{strings.Repeat("u", 1<<20), "1048576 bytes", false},
	} {
		got, err := Canonical(c.label)
		var le *Error
		if got != "" || !errors.Is(err, ErrInvalid) || !errors.As(err, &le) {
			t.Errorf("Canonical(%s) = %q, %v; want an Error", quoted(c.label), got, err)
			continue
		}
		if !strings.Contains(le.Reason, c.reason) || le.BareType != c.bare || le.Label != c.label {
			t.Errorf("Canonical(%s): %v (bare %v); want reason %q, bare %v", quoted(c.label), err, le.BareType, c.reason, c.bare)
		}
		if msg := err.Error(); len(msg) > 1024 || strings.ContainsAny(msg, "\x00\n\x7f") {
			t.Errorf("Canonical(%s): the error is %d bytes: %.200q", quoted(c.label), len(msg), msg)
		}
	}
}

func TestErrorText(t *testing.T) {
	_, err := Canonical("container_file_t")
	const want = `"container_file_t": not a security context: it has no colon; a context looks like user:role:type:level, such as system_u:object_r:container_file_t:s0`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = Canonical(strings.Repeat("x", 100))
	if want := `"` + strings.Repeat("x", 80) + `"...: `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want it to begin with %s", err, want)
	}
}

func TestSameAllocates(t *testing.T) {
	stored := []byte(strings.Repeat("x", 200) + "\x00")
	want := strings.Repeat("x", 200)
	same := true
	if n := testing.AllocsPerRun(1000, func() { same = same && Same(stored, want) }); n != 0 || !same {
		t.Errorf("%v allocations a call, same = %v", n, same)
	}
	// The measure can fail: text that outlives the comparison is copied.
	var keep string
	if n := testing.AllocsPerRun(1000, func() { keep = string(stored) }); n == 0 || keep == "" {
		t.Errorf("the control did not allocate")
	}
}
