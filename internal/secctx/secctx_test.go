// SPDX-License-Identifier: Apache-2.0

package secctx

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/selinux/go-selinux"
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
		{"\x00", "empty", false},
		{"container_file_t", "no colon", true},
		{"container_file_t\x00", "no colon", true},
		{"container/file", "no colon", false},
		{"s0", "only a level", false},
		{"s0:c1,c2", "only a level", false},
		{"s0:c1-s0:c1,c2", "only a level", false},
		{"object_r:container_file_t", "two fields", false},
		{":::", "user is empty", false},
		{":object_r:t:s0", "user is empty", false},
		{"u::t:s0", "role is empty", false},
		{"u:r::s0", "type is empty", false},
		{"u:r:", "type is empty", false},
		{ort + ":", "not a sensitivity", false},

		// Bytes that no name has.
		{" " + shared, `byte 1 is " "`, false},
		{shared + "\n", `is "\n"`, false},
		{shared + "\x00\x00", `is "\x00"`, false},
		{"system_u\x00:object_r:t:s0", `byte 9 is "\x00"`, false},
		{"u:r:t\x7f:s0", `is "\x7f"`, false},
		{"u:r:t\xc3\xa9:s0", `is "\xc3"`, false},
		{"u:r:a/b:s0", "not a name", false},
		{"u:r:t,c1", "not a name", false},
		{"u@h:r:t:s0", "not a name", false},

		// Levels.
		{ort + ":SystemLow", "mcstransd", false},
		{ort + ":SystemLow-SystemHigh", "mcstransd", false},
		{ort + ":s", "not a sensitivity", false},
		{ort + ":s00", "not a sensitivity", false},
		{ort + ":s01", "not a sensitivity", false},
		{ort + ":s16", "not a sensitivity", false},
		{ort + ":s-1", "not a sensitivity", false},
		{ort + ":s18446744073709551616", "not a sensitivity", false},
		{ort + ":c1,c2", "not a sensitivity", false},
		{ort + ":s0:", "not a category", false},
		{ort + ":s0:c", "not a category", false},
		{ort + ":s0:c01", "not a category", false},
		{ort + ":s0:c+1", "not a category", false},
		{ort + ":s0:c1024", "not a category", false},
		{ort + ":s0:c9999", "not a category", false},
		{ort + ":s0:c1.c1024", "not a category", false},
		{ort + ":s0:c1.", "not a category", false},
		{ort + ":s0:.c1", "not a category", false},
		{ort + ":s0:c1.c3.c5", "not a category", false},
		{ort + ":s0:c1,", "not a category", false},
		{ort + ":s0:,c1", "not a category", false},
		{ort + ":s0:c1,,c2", "not a category", false},
		{ort + ":s0:c18446744073709551617", "not a category", false},
		{ort + ":s0:c5.c3", "does not ascend", false},
		{ort + ":s0:c3.c3", "does not ascend", false},
		{ort + ":s0:c1:c2", "more than one colon", false},
		{"a:b:c:s0:c1:c2:c3:c4:c5", "more than one colon", false},
		{"a:b:c:d:e:f:g:h:i", "not a sensitivity", false},

		// Ranges.
		{ort + ":s0-", "not a sensitivity", false},
		{ort + ":-s0", "not a sensitivity", false},
		{ort + ":s0-s1-s2", "not a sensitivity", false},
		{ort + ":s0:c1-c2", "not a sensitivity", false},
		{ort + ":s3-s1", "descends", false},
		{ort + ":s0:c1-s0", "lacks", false},
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

func TestCompose(t *testing.T) {
	for _, c := range []struct{ base, user, role, typ, level, want string }{
		{shared, "", "", "", "", shared},
		{shared, "", "", "nfs_t", "", "system_u:object_r:nfs_t:s0"},
		{shared, "", "", "", "s0:c3,c2,c1", shared + ":c1.c3"},
		{shared + ":c1,c2", "", "", "", "s0", shared},
		{shared + ":c2,c1", "root", "", "", "", "root:object_r:container_file_t:s0:c1,c2"},
		{"u:r:t", "a", "b", "c", "", "a:b:c"},
		{"u:r:t", "", "", "", "s0", "u:r:t:s0"},

		{"", "a", "b", "c", "s0", ""}, // the base is checked even if nothing of it is kept
		{"t", "a", "b", "c", "s0", ""},
		{shared, "a:b", "", "", "", ""},
		{shared, "", "", "t:s0", "", ""},
		{"u:r:t", "", "", "t:s0", "", ""}, // the joined text would be valid
		{"u:r:t", "a:b", "", "", "", ""},
		{shared, "", "", "a b", "", ""},
		{shared, "", "", "", "s0:c1024", ""},
		{shared, "", "", "", "u:r:t:s0", ""},
	} {
		got, err := Compose(c.base, c.user, c.role, c.typ, c.level)
		if got != c.want || (err == nil) != (c.want != "") || (err != nil && !errors.Is(err, ErrInvalid)) {
			t.Errorf("Compose(%q, %q, %q, %q, %q) = %q, %v; want %q", c.base, c.user, c.role, c.typ, c.level, got, err, c.want)
		}
	}
}

// naiveLevel prints a level by hand-to-hand comparison, the way one would
// describe it: group what is consecutive, then print each group.
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

// spell writes categories in any order, with repetitions and runs.
func spell(r *rand.Rand, sens int, cats []int) string {
	var items []string
	for _, c := range cats {
		items = append(items, "c"+strconv.Itoa(c))
		n := 0
		for slices.Contains(cats, c+n+1) {
			n++
		}
		if n > 0 && r.IntN(2) == 0 {
			items = append(items, fmt.Sprintf("c%d.c%d", c, c+1+r.IntN(n)))
		}
	}
	r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	if len(items) == 0 {
		return fmt.Sprint("s", sens)
	}
	return fmt.Sprintf("s%d:%s", sens, strings.Join(items, ","))
}

// randomRange returns a range in a random spelling and as it ought to print.
func randomRange(r *rand.Rand) (spelt, want string) {
	pick := func(n int) (cats []int) {
		base := r.IntN(categories)
		for range n {
			if c := base + r.IntN(12); r.IntN(4) > 0 && c < categories {
				cats = append(cats, c) // near each other, so that runs happen
			} else {
				cats = append(cats, r.IntN(categories))
			}
		}
		return cats
	}
	s1 := r.IntN(sensitivities)
	low := pick(r.IntN(12))
	spelt, want = spell(r, s1, low), naiveLevel(s1, low)
	if r.IntN(2) == 0 {
		return spelt, want
	}
	s2 := s1 + r.IntN(min(2, sensitivities-s1))
	high := append(pick(r.IntN(4)), low...)
	spelt += "-" + spell(r, s2, high)
	if h := naiveLevel(s2, high); h != want {
		want += "-" + h
	}
	return spelt, want
}

func TestCanonicalRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	changed, ranges, runs, pairs := 0, 0, 0, 0
	for range 5000 {
		spelt, want := randomRange(r)
		const urt = "system_u:object_r:container_file_t:"
		got, err := Canonical(urt + spelt)
		if err != nil || got != urt+want {
			t.Fatalf("Canonical(%q) = %q, %v; want %q", urt+spelt, got, err, urt+want)
		}
		if again, err := Canonical(got); err != nil || again != got {
			t.Fatalf("Canonical(%q) = %q, %v; want it unchanged", got, again, err)
		}
		if runtime.GOOS == "linux" {
			// A second opinion, from a printer that others wrote.
			if theirs, err := selinux.CalculateGlbLub(spelt, spelt); err != nil || theirs != want {
				t.Fatalf("go-selinux prints %q as %q, %v; want %q", spelt, theirs, err, want)
			}
		}
		if spelt != want {
			changed++
		}
		if strings.Contains(want, "-") {
			ranges++
		}
		if strings.Contains(want, ".") {
			runs++
		}
		for _, l := range strings.Split(want, "-") {
			if before, after, ok := strings.Cut(l, ","); ok && !strings.ContainsAny(before+after, ",.") {
				pairs++
			}
		}
	}
	// Each kind must have happened often, or the comparison says little.
	if min(changed, ranges, runs, pairs) < 250 {
		t.Errorf("of 5000: %d spelt otherwise, %d ranges, %d with runs, %d of two categories", changed, ranges, runs, pairs)
	}
}

// The comparisons above can fail: a printer with a fault in it disagrees.
func TestCanonicalRandomControl(t *testing.T) {
	for name, fault := range map[string]func(string) string{
		"no fault":        func(s string) string { return s },
		"pair as a run":   func(s string) string { return strings.ReplaceAll(s, "c1,c2", "c1.c2") },
		"equal ends kept": func(s string) string { return s + "-" + s },
		"last one forgot": func(s string) string { return s[:strings.LastIndex(s, ",")] },
		"run as its ends": func(s string) string { return strings.ReplaceAll(s, ".", ",") },
	} {
		same := fault(naiveLevel(0, []int{9, 8, 7, 2, 1})) == "s0:c1,c2,c7.c9"
		if same != (name == "no fault") {
			t.Errorf("%s: same = %v", name, same)
		}
	}
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		stored, want string
		same         bool
	}{
		{shared, shared, true},
		{shared + "\x00", shared, true},
		{shared + "\x00\x00", shared, false},
		{"\x00" + shared, shared, false},
		{shared + "\n", shared, false},
		{shared[:len(shared)-1], shared, false},
		{"", shared, false},
		{"\x00", shared, false},
		{shared + ":c1,c2,c3", shared + ":c1.c3", false},
		{shared + "-s0", shared, false},
	} {
		if got := Same([]byte(c.stored), c.want); got != c.same {
			t.Errorf("Same(%q, %q) = %v", c.stored, c.want, got)
		}
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
