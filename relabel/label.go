// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Limits of a context.
const (
	// A context of maxLabel bytes or more is refused. The attribute itself
	// may have 64 KiB (XATTR_SIZE_MAX), but selinuxfs takes and prints a
	// context within one page (fs/libfs.c, simple_transaction_get), so a
	// longer one can be neither checked nor asked for. 4,096 is the smallest
	// page of any machine that we run on.
	maxLabel = 4096
	// What refpolicy declares, and with it every distribution: MLS_SENS = 16
	// and MLS_CATS = MCS_CATS = 1024 in its build.conf. A policy may be built
	// with more, or with names of another form. Such labels are refused here
	// although that policy's kernel would take them: their order, and so
	// their canonical form, cannot be known without the policy.
	sensitivities = 16
	categories    = 1024

	quotedMax = 80 // bytes of a label that an error repeats: a terminal's line

	contextForm = "a context looks like user:role:type:level, such as system_u:object_r:container_file_t:s0"
)

// LabelError says why a label is not a security context. errors.Is finds
// ErrLabel in it.
type LabelError struct {
	Label  string // as it was given
	Reason string // half a sentence for people; it may change
	// BareType says that the label is a single name, such as
	// container_file_t: most likely a type, given where a context belongs.
	BareType bool
}

func (e *LabelError) Error() string {
	return fmt.Sprintf("%s: %v: %s", quoted(e.Label), ErrLabel, e.Reason)
}

// Unwrap returns ErrLabel.
func (e *LabelError) Unwrap() error { return ErrLabel }

// Canonical checks that label is a security context and returns it as the
// kernel would print it: categories sorted and without repetition, a run of
// three or more as c1.c3, a run of two as c1,c2 (mls_sid_to_context in the
// kernel's security/selinux/ss/mls.c), and a range whose ends are equal as one
// level. One trailing NUL is dropped. Three fields, without a level, are right
// where the policy has no levels and are accepted.
//
// An empty label is an error. Every error is a *LabelError and wraps ErrLabel.
//
// Only the form is checked. Whether user, role and type exist is known to the
// loaded policy alone, and so are aliases: the kernel prints the type's own
// name where an alias of it was written.
func Canonical(label string) (string, error) {
	f, err := parseContext(label)
	if err != nil {
		return "", err
	}
	return f.String(), nil
}

// Compose returns base with its user, role, type or level replaced, in the
// canonical form. An empty argument keeps what base has; a level may be given
// to a base that has none. An empty base is an error. Errors are those of
// Canonical, about base or about the composed context.
func Compose(base, user, role, typ, level string) (string, error) {
	f, err := parseContext(base)
	if err != nil {
		return "", err
	}
	names := []string{cmp.Or(user, f.user), cmp.Or(role, f.role), cmp.Or(typ, f.typ)}
	label := strings.Join(names, ":")
	if level = cmp.Or(level, f.levels()); level != "" {
		label += ":" + level
	}
	for _, name := range names {
		// A colon would push the fields behind it along by one, into a
		// context that may be valid and is not the one asked for.
		if strings.Contains(name, ":") {
			return "", &LabelError{Label: label, Reason: quoted(name) + " is more than one field"}
		}
	}
	return Canonical(label)
}

// sameLabel reports whether stored, an attribute as it was read, is the
// canonical label want. One trailing NUL is dropped: libselinux stores one,
// go-selinux does not. All else is compared byte for byte, so a stored label
// in another form (c1,c2,c3 for c1.c3) is not the same and is rewritten. A
// kernel with SELinux never shows such a form, it prints its own; without it
// the attribute holds whatever bytes were written, and bytes are what the next
// reader compares. It does not allocate.
func sameLabel(stored []byte, want string) bool {
	if n := len(stored); n > 0 && stored[n-1] == 0 {
		stored = stored[:n-1]
	}
	return string(stored) == want
}

// contextFields is a parsed context. Why not go-selinux: its NewContext
// accepts anything with two colons, and off Linux returns nothing and no
// error; its parser of levels is reached only through CalculateGlbLub, which
// takes c01, takes c5.c3 as no category at all, asks nothing of a range's ends
// and fills c0.c2147483647 bit by bit. The tests use it as a second opinion.
type contextFields struct {
	user, role, typ string
	hasLevel        bool
	low, high       mlsLevel
}

// mlsLevel is a sensitivity and a set of categories.
type mlsLevel struct {
	sens int
	cats [categories / 64]uint64
}

func parseContext(label string) (contextFields, error) {
	var f contextFields
	text := strings.TrimSuffix(label, "\x00")
	fail := func(format string, a ...any) (contextFields, error) {
		return contextFields{}, &LabelError{Label: label, Reason: fmt.Sprintf(format, a...)}
	}
	if text == "" {
		return fail("it is empty; %s", contextForm)
	}
	if len(text) >= maxLabel {
		return fail("%d bytes, and %d are the most that the kernel's interfaces carry", len(text), maxLabel-1)
	}
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' {
			return fail("byte %d is %q, and only printable ASCII without spaces is allowed", i+1, text[i:i+1])
		}
	}
	// The first three colons separate; the rest is the range, whose own
	// colons stand before categories (string_to_context_struct in the
	// kernel's security/selinux/ss/services.c).
	parts := strings.SplitN(text, ":", 4)
	if _, _, reason := parseRange(text); reason == "" {
		return fail("it is only a level; %s", contextForm)
	}
	if len(parts) == 1 {
		return f, &LabelError{Label: label, Reason: "it has no colon; " + contextForm, BareType: isName(text)}
	}
	if len(parts) == 2 {
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
	f.user, f.role, f.typ = parts[0], parts[1], parts[2]
	if len(parts) == 4 {
		var reason string
		if f.low, f.high, reason = parseRange(parts[3]); reason != "" {
			return fail("%s", reason)
		}
		f.hasLevel = true
	}
	return f, nil
}

// isName tells an identifier. The kernel looks names up in the policy and
// minds no character but the colon, so what counts is what a compiler lets
// into a policy: letters, digits, '_', '-' and '.' (IDENTIFIER in checkpolicy's
// policy_scan.l, cil_verify_name in libsepol). Both want a letter first now;
// libsepol's CIL compiler once did not, and such a policy still loads.
func isName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return s != ""
}

// parseRange parses LEVEL or LEVEL-LEVEL and asks what mls_context_isvalid in
// the kernel asks: that the high level dominates the low one. A reason other
// than "" says what is wrong.
func parseRange(s string) (low, high mlsLevel, reason string) {
	lowText, highText, isRange := strings.Cut(s, "-")
	if low, reason = parseLevel(lowText); reason != "" {
		return low, high, reason
	}
	if !isRange {
		return low, low, ""
	}
	if high, reason = parseLevel(highText); reason != "" {
		return low, high, reason
	}
	if high.sens < low.sens {
		return low, high, fmt.Sprintf("range %s descends from s%d to s%d", quoted(s), low.sens, high.sens)
	}
	for i := range low.cats {
		if low.cats[i]&^high.cats[i] != 0 {
			return low, high, fmt.Sprintf("the low level of range %s has categories that the high one lacks", quoted(s))
		}
	}
	return low, high, ""
}

// parseLevel parses a sensitivity and, behind a colon, categories and runs of
// them, separated by commas.
func parseLevel(s string) (l mlsLevel, reason string) {
	sens, cats, hasCats := strings.Cut(s, ":")
	var ok bool
	if l.sens, ok = number(sens, 's', sensitivities); !ok {
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
		lo, ok := number(first, 'c', categories)
		hi, okHi := lo, true
		if isRun {
			hi, okHi = number(last, 'c', categories)
		}
		switch {
		case !ok || !okHi:
			return l, fmt.Sprintf("%s is not a category, c0 to c%d, or a run of them such as c0.c%[2]d", quoted(item), categories-1)
		case isRun && lo >= hi: // the kernel refuses an equal pair too
			return l, fmt.Sprintf("the run of categories %s does not ascend", quoted(item))
		}
		for c := lo; c <= hi; c++ {
			l.cats[c/64] |= 1 << (c % 64)
		}
	}
	return l, ""
}

// number parses a letter and a number below limit. A leading zero is refused:
// the kernel looks the name up as it stands, and no policy declares c01.
func number(s string, letter byte, limit int) (int, bool) {
	if len(s) < 2 || s[0] != letter || (s[1] == '0' && len(s) > 2) {
		return 0, false
	}
	n := 0
	for i := 1; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		if n = n*10 + int(s[i]-'0'); n >= limit {
			return 0, false
		}
	}
	return n, true
}

func (f *contextFields) String() string {
	s := f.user + ":" + f.role + ":" + f.typ
	if f.hasLevel {
		s += ":" + f.levels()
	}
	return s
}

// levels prints the level or range; "" if there is none.
func (f *contextFields) levels() string {
	if !f.hasLevel {
		return ""
	}
	b := f.low.append(nil)
	if f.low != f.high {
		b = f.high.append(append(b, '-'))
	}
	return string(b)
}

func (l *mlsLevel) has(c int) bool { return l.cats[c/64]>>(c%64)&1 != 0 }

func (l *mlsLevel) append(b []byte) []byte {
	b = strconv.AppendInt(append(b, 's'), int64(l.sens), 10)
	sep := byte(':')
	for c := 0; c < categories; c++ {
		if !l.has(c) {
			continue
		}
		first := c
		for c+1 < categories && l.has(c+1) {
			c++
		}
		b = strconv.AppendInt(append(b, sep, 'c'), int64(first), 10)
		sep = ','
		switch c - first {
		case 0:
		case 1:
			b = strconv.AppendInt(append(b, ',', 'c'), int64(c), 10)
		default:
			b = strconv.AppendInt(append(b, '.', 'c'), int64(c), 10)
		}
	}
	return b
}

// quoted quotes for an error, where a label of pages would bury the sentence.
func quoted(s string) string {
	if len(s) > quotedMax {
		return fmt.Sprintf("%q...", s[:quotedMax])
	}
	return strconv.Quote(s)
}
