// SPDX-License-Identifier: Apache-2.0

// Package words makes of names, numbers and times what a line for people holds.
//
// Names come from trees whose owners may be hostile: a name may hold escape
// sequences, and a label read from a disk may as well. Nothing of either
// reaches a terminal raw.
package words

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Quote returns s in double quotes with Go's escapes.
func Quote(s string) string { return strconv.Quote(s) }

// Plain returns s as it is if that is printable and cannot be mistaken for a
// quoted name, else quoted.
func Plain(s string) string {
	if s == "" || s != strings.TrimSpace(s) || strings.ContainsAny(s, "\"\\") || Clean(s) != s {
		return Quote(s)
	}
	return s
}

// Clean escapes what is not printable in a sentence, without quoting it.
func Clean(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if unprintable(r) || r == utf8.RuneError && n == 1 {
			q := strconv.Quote(s[:n])
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func unprintable(r rune) bool { return !strconv.IsPrint(r) }

// Brief cuts a value of the command line that would bury the sentence.
func Brief(s string) string {
	const most = 80 // bytes: a terminal's line
	if len(s) > most {
		return Quote(s[:most]) + "..."
	}
	return Plain(s)
}

// Cut ends s, which is UTF-8, after so many bytes.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	most -= len("...")
	for !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "..."
}

// ASCII replaces what is not printable in JSON text by its \u escape, so that
// C1 controls and marks of direction, which JSON allows raw, do no harm.
func ASCII(line []byte) []byte {
	out := line[:0:0]
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		switch {
		case r < 0x7f || unicode.IsPrint(r):
			out = append(out, line[:n]...)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			out = escape(escape(out, hi), lo)
		default:
			out = escape(out, r)
		}
		line = line[n:]
	}
	return out
}

func escape(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}
