// SPDX-License-Identifier: Apache-2.0

// Package secctx parses security contexts: their canonical form, the seals of a relabel, and the
// comparison with what is stored. It knows the form alone, and no policy.
package secctx

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Limits of a context.
const (
	// A context of longest bytes or more is refused: selinuxfs takes and prints a context
	// within one page (fs/libfs.c, simple_transaction_get), so a longer one can be neither
	// checked nor asked for. No machine that we run on has a smaller page.
	longest = 4096
	// What refpolicy declares, and with it every distribution: MLS_SENS = 16 and MLS_CATS =
	// MCS_CATS = 1024 in its build.conf. Labels of a policy with more, or with names of another
	// form, are refused: their canonical form cannot be known without the policy.
	sensitivities = 16
	categories    = 1024

	quotedMax = 80 // bytes of a label that an error repeats: a terminal's line

	contextForm = "a context looks like user:role:type:level, such as system_u:object_r:container_file_t:s0"
)

// ErrInvalid is the error for a label that is not a security context.
var ErrInvalid = errors.New("not a security context")

// Error has the reason why a label is not a security context. errors.Is finds ErrInvalid in it.
type Error struct {
	Label    string // as it was given
	Reason   string // half a sentence for people
	BareType bool   // the label is a single name, most likely a type
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %v: %s", quoted(e.Label), ErrInvalid, e.Reason)
}

// Unwrap returns ErrInvalid.
func (e *Error) Unwrap() error { return ErrInvalid }

// Canonical checks that label is a security context and returns it as the kernel would print it:
// categories sorted and without repetition, a run of three or more as c1.c3, a run of two as c1,c2
// (mls_sid_to_context in the kernel's security/selinux/ss/mls.c), and a range whose ends are equal
// as one level. One trailing NUL is dropped. Three fields are right where the policy has no levels.
//
// Every error is an *Error. Whether user, role and type exist, or are aliases, only the loaded
// policy knows.
func Canonical(label string) (string, error) {
	c, err := parse(label)
	if err != nil {
		return "", err
	}
	return c.String(), nil
}

// Compose returns base with its user, role, type or level replaced, in the canonical form. An empty
// argument keeps what base has. Errors are those of Canonical, about base or the composed context.
func Compose(base, user, role, typ, level string) (string, error) {
	c, err := parse(base)
	if err != nil {
		return "", err
	}
	c = context{cmp.Or(user, c.user), cmp.Or(role, c.role), cmp.Or(typ, c.typ), cmp.Or(level, c.level)}
	for _, name := range []string{c.user, c.role, c.typ} {
		// A colon would push the fields behind it along by one, into a
		// context that may be valid and is not the one asked for.
		if strings.Contains(name, ":") {
			return "", &Error{Label: c.String(), Reason: quoted(name) + " is more than one field"}
		}
	}
	return Canonical(c.String())
}

// Same reports whether stored, an attribute as it was read, is the canonical label want, byte for
// byte but for one trailing NUL: libselinux stores one, go-selinux does not. It does not allocate.
func Same(stored []byte, want string) bool {
	if n := len(stored); n > 0 && stored[n-1] == 0 {
		stored = stored[:n-1]
	}
	return string(stored) == want
}

// Trim is a stored label without its NUL, as a string of its own.
func Trim[T string | []byte](stored T) string { return strings.TrimSuffix(string(stored), "\x00") }

// context is a parsed context. Why not go-selinux: its NewContext accepts anything with two
// colons, and off Linux returns nothing and no error; its parser of levels takes c01, takes c5.c3
// as no category at all, and asks nothing of a range's ends. The tests use it as a second opinion.
type context struct {
	user, role, typ string
	level           string // or the range, in canonical form; "" for none
}

func (c context) String() string {
	if c.level == "" {
		return c.user + ":" + c.role + ":" + c.typ
	}
	return c.user + ":" + c.role + ":" + c.typ + ":" + c.level
}

func parse(label string) (context, error) {
	text := strings.TrimSuffix(label, "\x00")
	fail := func(format string, a ...any) (context, error) {
		return context{}, &Error{Label: label, Reason: fmt.Sprintf(format, a...)}
	}
	if text == "" {
		return fail("it is empty; %s", contextForm)
	}
	if len(text) >= longest {
		return fail("%d bytes, and %d are the most that the kernel's interfaces carry", len(text), longest-1)
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }); i >= 0 {
		return fail("byte %d is %q, and only printable ASCII without spaces is allowed", i+1, text[i:i+1])
	}
	if len(text) > 1 && text[0] == 's' && '0' <= text[1] && text[1] <= '9' { // as a sensitivity begins
		if _, reason := canonicalRange(text); reason == "" {
			return fail("it is only a level; %s", contextForm)
		}
	}
	// The first three colons separate; the rest is the range, whose own
	// colons stand before categories (string_to_context_struct in the
	// kernel's security/selinux/ss/services.c).
	parts := strings.SplitN(text, ":", 4)
	switch len(parts) {
	case 1:
		return context{}, &Error{Label: label, Reason: "it has no colon; " + contextForm, BareType: isName(text)}
	case 2:
		return fail("it has two fields; %s", contextForm)
	}
	for i, field := range []string{"user", "role", "type"} {
		if parts[i] == "" {
			return fail("its %s is empty; %s", field, contextForm)
		}
		if !isName(parts[i]) {
			return fail("its %s %s is not a name: letters, digits, '_', '-' and '.'", field, quoted(parts[i]))
		}
	}
	c := context{user: parts[0], role: parts[1], typ: parts[2]}
	if len(parts) == 4 {
		var reason string
		if c.level, reason = canonicalRange(parts[3]); reason != "" {
			return fail("%s", reason)
		}
	}
	return c, nil
}

// isName reports whether s is what a compiler lets into a policy: letters, digits, '_', '-' and '.'
// (IDENTIFIER in checkpolicy's policy_scan.l, cil_verify_name in libsepol). Both want a letter first
// now; libsepol's CIL compiler once did not, and such a policy still loads.
func isName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	})
}

// canonicalRange is LEVEL or LEVEL-LEVEL in canonical form. The high level has to dominate the low
// one (mls_context_isvalid in the kernel). A reason other than "" says what is wrong.
func canonicalRange(s string) (canonical, reason string) {
	lowText, highText, isRange := strings.Cut(s, "-")
	low, reason := parseLevel(lowText)
	if reason != "" || !isRange {
		return low.String(), reason
	}
	high, reason := parseLevel(highText)
	if reason != "" || low == high {
		return low.String(), reason
	}
	if high.sens < low.sens {
		return "", fmt.Sprintf("range %s descends from s%d to s%d", quoted(s), low.sens, high.sens)
	}
	for c := range categories {
		if low.cats[c] && !high.cats[c] {
			return "", fmt.Sprintf("the low level of range %s has categories that the high one lacks", quoted(s))
		}
	}
	return low.String() + "-" + high.String(), ""
}

type level struct {
	sens  int
	cats  [categories]bool
	above int // one more than the highest category
}

// parseLevel parses a sensitivity and, behind a colon, categories and runs of them.
func parseLevel(s string) (l level, reason string) {
	sens, cats, hasCats := strings.Cut(s, ":")
	var ok bool
	if l.sens, ok = number(sens, "s", sensitivities); !ok {
		return l, fmt.Sprintf("%s is not a sensitivity, s0 to s%d (a translated name such as SystemLow is known to mcstransd, not to the kernel: give the level it stands for)", quoted(sens), sensitivities-1)
	}
	if !hasCats {
		return l, ""
	}
	if strings.Contains(cats, ":") {
		return l, fmt.Sprintf("level %s has more than one colon", quoted(s))
	}
	for item := range strings.SplitSeq(cats, ",") {
		first, last, isRun := strings.Cut(item, ".")
		lo, ok := number(first, "c", categories)
		hi, okHi := lo, true
		if isRun {
			hi, okHi = number(last, "c", categories)
		}
		switch {
		case !ok || !okHi:
			return l, fmt.Sprintf("%s is not a category, c0 to c%d, or a run of them such as c0.c%[2]d", quoted(item), categories-1)
		case isRun && lo >= hi: // the kernel refuses an equal pair too
			return l, fmt.Sprintf("the run of categories %s does not ascend", quoted(item))
		}
		for c := lo; c <= hi; c++ {
			l.cats[c] = true
		}
		l.above = max(l.above, hi+1)
	}
	return l, ""
}

// number parses a letter and a number below limit, spelt as it would be printed:
// the kernel looks the name up as it stands, and no policy declares c01.
func number(s, letter string, limit int) (int, bool) {
	digits, ok := strings.CutPrefix(s, letter)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && 0 <= n && n < limit && digits == strconv.Itoa(n)
}

func (l *level) String() string {
	b, sep := strconv.AppendInt([]byte("s"), int64(l.sens), 10), ":c"
	for c := 0; c < l.above; c++ {
		first := c
		for c < l.above && l.cats[c] {
			c++
		}
		if c == first {
			continue
		}
		b = strconv.AppendInt(append(b, sep...), int64(first), 10)
		sep = ",c"
		switch last := c - 1; last - first {
		case 0:
		case 1:
			b = strconv.AppendInt(append(b, sep...), int64(last), 10)
		default:
			b = strconv.AppendInt(append(b, ".c"...), int64(last), 10)
		}
	}
	return string(b)
}

// quoted quotes for an error, where a label of pages would bury the sentence.
func quoted(s string) string {
	if len(s) > quotedMax {
		return fmt.Sprintf("%q...", s[:quotedMax])
	}
	return strconv.Quote(s)
}
