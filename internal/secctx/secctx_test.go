// SPDX-License-Identifier: Apache-2.0

package secctx

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
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

// refused are texts that are no labels, and what the error says of each.
var refused = []struct {
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
}

func TestCanonicalRefuses(t *testing.T) {
	for _, c := range refused {
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

// The grammar of contexts, as expressions.
const (
	nameForm  = `[0-9A-Za-z_.-]+`
	catForm   = `c(?:0|[1-9][0-9]{0,2}|10[01][0-9]|102[0-3])`
	itemForm  = catForm + `(?:\.` + catForm + `)?`
	levelForm = `s(?:[0-9]|1[0-5])(?::` + itemForm + `(?:,` + itemForm + `)*)?`
	rangeForm = `(` + levelForm + `)(?:-(` + levelForm + `))?`
)

var (
	contextText = regexp.MustCompile(`^(` + nameForm + `):(` + nameForm + `):(` + nameForm + `)(?::(` + rangeForm + `))?$`)
	rangeText   = regexp.MustCompile(`^` + rangeForm + `$`)
)

// naiveRange is the canonical form of a range; "" if there is none.
func naiveRange(s string) string {
	m := rangeText.FindStringSubmatch(s)
	if m == nil {
		return ""
	}
	low, lowCats, ok := naiveCats(m[1])
	if m[2] == "" || !ok {
		return low
	}
	high, highCats, ok := naiveCats(m[2])
	number := func(s string) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(strings.Split(s, ":")[0], "s"))
		return n
	}
	if !ok || number(m[1]) > number(m[2]) {
		return ""
	}
	for c := range lowCats {
		if !highCats[c] {
			return ""
		}
	}
	if low == high {
		return low
	}
	return low + "-" + high
}

// naiveCats reads a level that has the form of one.
func naiveCats(s string) (printed string, set map[int]bool, ok bool) {
	set = map[int]bool{}
	head, items, has := strings.Cut(s, ":")
	sens, _ := strconv.Atoi(head[1:])
	var list []int
	for _, item := range strings.Split(items, ",") {
		if !has {
			break
		}
		ends := strings.Split(strings.ReplaceAll(item, "c", ""), ".")
		first, _ := strconv.Atoi(ends[0])
		last, _ := strconv.Atoi(ends[len(ends)-1])
		if len(ends) == 2 && first >= last {
			return "", nil, false
		}
		for c := first; c <= last; c++ {
			if !set[c] {
				list = append(list, c)
			}
			set[c] = true
		}
	}
	return naiveLevel(sens, list), set, true
}

// naiveLevel prints a level: what is consecutive is a group, and each group is printed.
func naiveLevel(sens int, cats []int) string {
	cats = slices.Compact(slices.Sorted(slices.Values(cats)))
	var groups [][]int
	for _, c := range cats {
		if n := len(groups); n > 0 && groups[n-1][len(groups[n-1])-1] == c-1 {
			groups[n-1] = append(groups[n-1], c)
		} else {
			groups = append(groups, []int{c})
		}
	}
	var items []string
	for _, g := range groups {
		switch first, last := g[0], g[len(g)-1]; len(g) {
		case 1:
			items = append(items, fmt.Sprint("c", first))
		case 2:
			items = append(items, fmt.Sprintf("c%d,c%d", first, last))
		default:
			items = append(items, fmt.Sprintf("c%d.c%d", first, last))
		}
	}
	if len(items) == 0 {
		return fmt.Sprint("s", sens)
	}
	return fmt.Sprintf("s%d:%s", sens, strings.Join(items, ","))
}

// naiveContext is what Canonical promises, by expressions and maps: the fields
// in their canonical form, the level "" if there is none.
func naiveContext(label string) (user, role, typ, level string, ok bool) {
	text := strings.TrimSuffix(label, "\x00")
	m := contextText.FindStringSubmatch(text)
	if m == nil || len(text) > 4095 || naiveRange(text) != "" {
		return "", "", "", "", false
	}
	if m[4] != "" {
		if level = naiveRange(m[4]); level == "" {
			return "", "", "", "", false
		}
	}
	return m[1], m[2], m[3], level, true
}

func naiveCanonical(label string) (string, bool) {
	user, role, typ, level, ok := naiveContext(label)
	if !ok {
		return "", false
	}
	label = user + ":" + role + ":" + typ
	if level != "" {
		label += ":" + level
	}
	return label, true
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
	if _, _, typ, level, _ := naiveContext(got); runtime.GOOS == "linux" {
		theirs, err := selinux.NewContext(got)
		if err != nil || theirs.Get() != got || theirs["type"] != typ || theirs["level"] != level {
			t.Fatalf("go-selinux splits %q as %q, %v", got, theirs, err)
		}
		if level == "" {
			return
		}
		if level, err = selinux.CalculateGlbLub(level, level); err != nil || level != theirs["level"] {
			t.Fatalf("go-selinux prints the level of %q as %q, %v", got, level, err)
		}
	}
}

// FuzzCanonicalForm: Canonical accepts what a naive reader accepts and prints
// it as that one does; and only what it returned is the same label.
func FuzzCanonicalForm(f *testing.F) {
	for _, c := range []struct {
		label string
		code  []byte
	}{
		{"\x00", nil},
		{"s0:c1-s0:c1", nil}, // three fields, and a range
		{"s0:c1-s0:c2", nil}, // three fields, and no range
		{"u:r:t", code(":", "s0", ":", "c1", ",", "c2", "-", "s15", ":", "c1", ".", "c64")},
		{"u:r:t", code(":s0:", "c3", ",", "c1", ",", "c2", ",", "c1")},
		{"u:r:t:s1", code("-", "s0")},
		{"u:r:t:s10", code("-", "s1")},
		{"", code("system_u:object_r:container_file_t:", "s0", "-", "s0", ":", "c0", ".", "c1023", "\x00")},
		{"u:r:t:s0:c0.c2147483647", nil},
		{"u:r:t:s0:c3.c3", nil},
		{"u:r:t:s0", code(":", "c1", ".", "c64", "-", "s15", ":", "c1", ".", "c63")}, // lacks one
		{"u:r:t:s0:c1000-s0:c1001", nil},
		{"u:r:t:s0:c1023", code("-", "s1", ":", "c0", ".", "c1022")},
		{"u:r:t:s0", code(":", "c1022", ",", "c1023", "-", "s0", ":", "c64", ".", "c1023")},
		{"u:r:t:s0:c1-s0", nil},
		{strings.Repeat("u", longest-1-len(":r:t:s0-s0")) + ":r:t:s0-s0\x00", nil},
	} {
		f.Add(c.label, c.code)
	}
	for _, c := range canonicalCases {
		f.Add(c.label, code())
	}
	for _, c := range refused {
		f.Add(c.label, code())
	}
	f.Fuzz(func(t *testing.T, label string, code []byte) {
		label += assemble(code)
		got, err := Canonical(label)
		if want, ok := naiveCanonical(label); (err == nil) != ok || got != want {
			t.Fatalf("Canonical(%q) = %q, %v; want %q, %t", label, got, err, want, ok)
		}
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

// FuzzCompose: the fields asked for are those that come out, each in its
// place, and the others are those of the base.
func FuzzCompose(f *testing.F) {
	for _, c := range [][5]string{
		{shared, "", "", "", ""},
		{shared, "", "", "nfs_t", ""},
		{shared + ":c1,c2,c3", "root", "", "", "s0-s0:c0.c1023"},
		{"u:r:t", "", "", "", "s0:c3,c2,c1"},
		{"u:r:t", "", "", "t:s0", ""}, // the joined text would be valid
		{"u:r:t", "a:b", "c", "", ""},
		{"u:r:t", "", "", "t\x00", ""},
		{"u:r:t:s0", "", "", "t\x00", ""},
		{"u:r:t", "", "", "", "s0\x00"},
		{"u:r:t", "", "", "", "\x00"},
		{"u:r:t", "s0", "c1-s0", "c1", ""}, // a range in all
		{"", "a", "b", "c", "s0"},
		{"u:r:t\x00", "a", "b", "c", "s1-s0"},
		{shared, strings.Repeat("u", longest), "", "", ""},
	} {
		f.Add(c[0], c[1], c[2], c[3], c[4], []byte{})
	}
	f.Add("u:r:t", "", "", "", "", code("s0", "-", "s1", ":", "c1", ".", "c3"))
	f.Add("u:r:t", "a", "b", "c", "s", code("0", ":", "c64", ",", "c63", ",", "c1", "\x00"))
	f.Fuzz(func(t *testing.T, base, user, role, typ, level string, code []byte) {
		level += assemble(code)
		got, err := Compose(base, user, role, typ, level)
		checkLabel(t, got, err)

		asked := []string{user, role, typ, level}
		var fields []string
		u, r, y, l, ok := naiveContext(base)
		for i, kept := range []string{u, r, y, l} {
			if asked[i] != "" {
				kept = asked[i]
			}
			if i < 3 && strings.Contains(kept, ":") {
				ok = false
			}
			if i < 3 || kept != "" {
				fields = append(fields, kept)
			}
		}
		want := ""
		if ok {
			want, ok = naiveCanonical(strings.Join(fields, ":"))
		}
		if (err == nil) != ok || got != want {
			t.Fatalf("Compose(%q, %q) = %q, %v; want %q, %t", base, asked, got, err, want, ok)
		}
		if err != nil {
			if _, errBase := Canonical(base); errBase != nil && !reflect.DeepEqual(err, errBase) {
				t.Fatalf("Compose(%q): %v; Canonical: %v", base, err, errBase)
			}
			return
		}

		if again, err := Compose(got, user, role, typ, level); err != nil || again != got {
			t.Fatalf("Compose(%q, %q) = %q, %v; want it unchanged", got, asked, again, err)
		}
	})
}
