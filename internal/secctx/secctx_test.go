// SPDX-License-Identifier: Apache-2.0

package secctx

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/opencontainers/selinux/go-selinux"
)

const (
	ort    = "system_u:object_r:container_file_t"
	shared = ort + ":s0"
)

// canonicalCases are labels and their canonical forms.
var canonicalCases = []struct{ label, want string }{
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
	{ort + ":s0-s0:c0.c1023\x00", ort + ":s0-s0:c0.c1023"},
	{ort + ":s0:c1,c2-s15:c1.c64", ort + ":s0:c1,c2-s15:c1.c64"},
	{ort + ":s0:c1022,c1023-s0:c64.c1023", ort + ":s0:c1022,c1023-s0:c64.c1023"},
	{"s0:c1-s0:c2", "s0:c1-s0:c2"}, // three fields, and no range
	{strings.Repeat("u", longest-1-len(":r:t:s0")) + ":r:t:s0", strings.Repeat("u", longest-1-len(":r:t:s0")) + ":r:t:s0"},
}

func TestCanonical(t *testing.T) {
	for _, c := range canonicalCases {
		got, err := Canonical(c.label)
		if err != nil || got != c.want {
			t.Errorf("Canonical(%s) = %q, %v; want %q", quoted(c.label), got, err, c.want)
		}
	}
}

// refused are texts that are no labels, by what the error says of each.
var refused = map[string][]string{
	"empty":         {"", "\x00"},
	"no colon":      {"container_file_t", "container/file"}, // the first may be a type
	"only a level":  {"s0:c1-s0:c1,c2"},
	"two fields":    {"object_r:container_file_t"},
	"user is empty": {":object_r:t:s0"},
	"role is empty": {"u::t:s0"},
	"type is empty": {"u:r::s0"},

	// Bytes that no name has.
	`byte 1 is " "`:    {" " + shared},
	`is "\n"`:          {shared + "\n"},
	`is "\x00"`:        {shared + "\x00\x00"},
	`byte 9 is "\x00"`: {"system_u\x00:object_r:t:s0"},
	`is "\xc3"`:        {"u:r:t\xc3\xa9:s0"},
	"not a name":       {"u:r:a/b:s0"},

	// Levels and ranges.
	"mcstransd":         {ort + ":SystemLow"},
	"not a sensitivity": {ort + ":", ort + ":s", ort + ":s16", ort + ":s18446744073709551616", ort + ":s0-", ort + ":s0-s1-s2"},
	"not a category": {
		ort + ":s0:", ort + ":s0:c01", ort + ":s0:c1024", ort + ":s0:c1.c3.c5", ort + ":s0:c1,,c2",
		ort + ":s0:c18446744073709551617", ort + ":s0:c0.c2147483647",
	},
	"does not ascend":     {ort + ":s0:c5.c3", ort + ":s0:c3.c3"},
	"more than one colon": {ort + ":s0:c1:c2", "a:b:c:s0:c1:c2:c3:c4:c5"},
	"descends":            {ort + ":s3-s1", ort + ":s10-s1"},
	"lacks": {
		ort + ":s0:c1,c2-s0:c1", ort + ":s0:c1000-s15:c0.c999", ort + ":s0:c1-s0", ort + ":s0:c1.c64-s15:c1.c63", ort + ":s0:c1023-s1:c0.c1022",
	},

	"4096 bytes":    {strings.Repeat("u", longest-len(":r:t:s0")) + ":r:t:s0"},
	"1048576 bytes": {strings.Repeat("u", 1<<20)},
}

func TestCanonicalRefuses(t *testing.T) {
	for reason, labels := range refused {
		for _, label := range labels {
			got, err := Canonical(label)
			var le *Error
			if got != "" || !errors.Is(err, ErrInvalid) || !errors.As(err, &le) {
				t.Errorf("Canonical(%s) = %q, %v; want an Error", quoted(label), got, err)
				continue
			}
			if bare := label == "container_file_t"; !strings.Contains(le.Reason, reason) || le.BareType != bare || le.Label != label {
				t.Errorf("Canonical(%s): %v (bare %v); want reason %q, bare %v", quoted(label), err, le.BareType, reason, bare)
			}
			if msg := err.Error(); len(msg) > 1024 || strings.ContainsAny(msg, "\x00\n\x7f") {
				t.Errorf("Canonical(%s): the error is %d bytes: %.200q", quoted(label), len(msg), msg)
			}
		}
	}
	if _, err := Canonical(strings.Repeat("x", 100)); !strings.HasPrefix(err.Error(), `"`+strings.Repeat("x", 80)+`"...: `) {
		t.Error(err)
	}
}

// pieces are what labels are made of, so that a fuzzer that changes a byte
// changes a piece. Raw bytes reach valid labels too rarely.
var pieces = [32]string{
	":", ",", ".", "-", "s0", "s1", "s15", "s16",
	"c0", "c1", "c2", "c3", "c63", "c64", "c1022", "c1023",
	"c1024", "c01", "u", "r", "t", "_", "system_u", "unconfined_u",
	"root", "staff_u", "object_r", ":s0:", "system_u:object_r:container_file_t:", "\x00", " ", "0",
}

func assemble(code []byte) string {
	var b strings.Builder
	for _, c := range code {
		b.WriteString(pieces[c%32])
	}
	return b.String()
}

// code is assemble backwards, for seeds.
func code(parts ...string) (code []byte) {
	for _, p := range parts {
		for i := range pieces {
			if pieces[i] == p {
				code = append(code, byte(i))
			}
		}
	}
	return code
}

// checkLabel is what holds of an answer of Canonical or Compose.
func checkLabel(t *testing.T, got string, err error) {
	t.Helper()
	if err != nil {
		var le *Error
		if got != "" || !errors.Is(err, ErrInvalid) || !errors.As(err, &le) {
			t.Fatalf("%q, %v: not an Error", got, err)
		}
		if msg := err.Error(); len(msg) > 2048 || strings.ContainsFunc(msg, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Fatalf("%d bytes of error: %q", len(msg), msg)
		}
		return
	}
	if got == "" || strings.ContainsFunc(got, func(r rune) bool { return r <= ' ' || r > '~' }) {
		t.Fatalf("%q is no label", got)
	}
	if again, err := Canonical(got); err != nil || again != got {
		t.Fatalf("Canonical(%q) = %q, %v; want it unchanged", got, again, err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	theirs, err := selinux.NewContext(got)
	if err != nil || theirs.Get() != got {
		t.Fatalf("go-selinux splits %q as %q, %v", got, theirs, err)
	}
	if level := theirs["level"]; level != "" {
		if printed, err := selinux.CalculateGlbLub(level, level); err != nil || printed != level {
			t.Fatalf("go-selinux prints the level of %q as %q, %v", got, printed, err)
		}
	}
}

// FuzzCanonicalForm: what Canonical prints is its own canonical form, as go-selinux prints it
// too, and only that is the same label.
func FuzzCanonicalForm(f *testing.F) {
	f.Add("u:r:t", code(":", "s0", ":", "c1", ",", "c2", "-", "s15", ":", "c1", ".", "c64"))
	for _, c := range canonicalCases {
		f.Add(c.label, code())
	}
	for _, labels := range refused {
		for _, label := range labels {
			f.Add(label, code())
		}
	}
	f.Fuzz(func(t *testing.T, label string, code []byte) {
		label += assemble(code)
		got, err := Canonical(label)
		checkLabel(t, got, err)
		composed, errComposed := Compose(label, "", "", "", "")
		if composed != got || !reflect.DeepEqual(err, errComposed) {
			t.Fatalf("Compose(%q) = %q, %v; Canonical: %q, %v", label, composed, errComposed, got, err)
		}
		if err != nil {
			return
		}

		text := strings.TrimSuffix(label, "\x00")
		if len(got) > len(text) {
			t.Fatalf("Canonical(%q) = %q is longer", label, got)
		}
		for _, end := range []string{"", "\x00"} {
			if !Same([]byte(got+end), got) || Same([]byte(got+end+"\x00"), got) != (end == "") || Same([]byte(got[1:]+end), got) {
				t.Fatalf("Same is wrong about %q and %q behind it", got, end)
			}
		}
		if Same([]byte(label), got) != (text == got) {
			t.Fatalf("Same(%q, %q) = %t", label, got, text != got)
		}
		// go-selinux prints what was accepted, in whatever spelling it came, as
		// we do. It is not asked about what was refused: it would fill
		// c0.c2147483647 bit by bit.
		if parts := strings.SplitN(text, ":", 4); len(parts) == 4 && runtime.GOOS == "linux" {
			theirs, err := selinux.CalculateGlbLub(parts[3], parts[3])
			if ours := strings.SplitN(got, ":", 4)[3]; err != nil || theirs != ours {
				t.Fatalf("go-selinux prints %q as %q, %v; not %q", parts[3], theirs, err, ours)
			}
		}
	})
}

// TestCompose: the fields asked for are those that come out, each in its place, and the others
// are those of the base.
func TestCompose(t *testing.T) {
	for _, c := range []struct{ base, user, role, typ, level, want string }{
		{shared, "", "", "", "", shared},
		{shared, "", "", "nfs_t", "", "system_u:object_r:nfs_t:s0"},
		{shared + ":c1,c2,c3", "root", "", "", "s0-s0:c0.c1023", "root:object_r:container_file_t:s0-s0:c0.c1023"},
		{"u:r:t", "", "", "", "s0:c3,c2,c1", "u:r:t:s0:c1.c3"},
		{"u:r:t\x00", "a", "b", "c", "s1-s2", "a:b:c:s1-s2"},
		{"u:r:t:s0", "", "", "", "s0\x00", "u:r:t:s0"},
		{"u:r:t", "", "", "t:s0", "", ""}, // the joined text would be valid
		{"u:r:t", "a:b", "c", "", "", ""},
		{"u:r:t", "", "", "", "\x00", ""},
		{"u:r:t:s0", "", "", "t\x00", "", ""},
		{"u:r:t", "s0", "c1-s0", "c1", "", ""}, // a range in all
		{"", "a", "b", "c", "s0", ""},
		{"u:r:t", "a", "b", "c", "s1-s0", ""},
		{shared, strings.Repeat("u", longest), "", "", "", ""},
	} {
		got, err := Compose(c.base, c.user, c.role, c.typ, c.level)
		if checkLabel(t, got, err); got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}
