// SPDX-License-Identifier: Apache-2.0

// Package words makes of names, numbers and times what a line for people holds.
//
// Names come from trees whose owners may be hostile: a name may hold escape
// sequences, and a label read from a disk may as well. Nothing of either
// reaches a terminal raw.
package words

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
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

var unquoted = strings.NewReplacer(`\"`, `"`, `\\`, `\`)

// Clean escapes what is not printable in a sentence, without quoting it.
func Clean(s string) string {
	q := strconv.Quote(s)
	return unquoted.Replace(q[1 : len(q)-1])
}

// Brief cuts a value of the command line that would bury the sentence.
func Brief(s string) string {
	if len(s) > 80 { // bytes: a terminal's line
		return Quote(s[:80]) + "..."
	}
	return Plain(s)
}

// Cut ends s, which is UTF-8, after so many bytes.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("...")], "") + "..."
}

// ASCII replaces what is not printable in JSON text by its \u escape, so that
// C1 controls and marks of direction, which JSON allows raw, do no harm.
func ASCII(line []byte) []byte {
	raw := func(r rune) bool { return r == 0x7f || r > 0x7f && !unicode.IsPrint(r) }
	if bytes.IndexFunc(line, raw) < 0 {
		return bytes.Clone(line)
	}
	var out []byte
	for _, r := range string(line) {
		if !raw(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, u)
		}
	}
	return out
}

// Shell quotes a word for a POSIX shell; a terminal shows all of it. What is
// not printable takes $'...', which POSIX has since 2024, bash, zsh and ksh for
// long, and dash not.
func Shell(word string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_"
	switch {
	case word != "" && word[0] != '=' && strings.Trim(word, harmless) == "":
		return word
	case Clean(word) == word:
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	quoted := []byte("$'")
	for _, c := range []byte(word) {
		switch {
		case c == '\'' || c == '\\':
			quoted = append(quoted, '\\', c)
		case c < ' ' || c > '~':
			quoted = fmt.Appendf(quoted, `\%03o`, c)
		default:
			quoted = append(quoted, c)
		}
	}
	return string(quoted) + "'"
}

// Count words a number of things.
func Count(n int64, one, many string) string {
	if n == 1 {
		many = one
	}
	return Thousands(n) + " " + many
}

// Thousands words n with a comma at each thousand.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Seconds words a span of time: 0.042 s, 61.2 s.
func Seconds(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.3f s", d.Seconds())
}

// Clock words a span of time in whole seconds: 0:42, 1:01:01.
func Clock(d time.Duration) string {
	s := int64(d / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// leastPath is below how many columns a path says nothing, and Widest how many
// a line has that goes to no terminal.
const (
	leastPath = 12
	Widest    = 200
)

// Fit makes a line of at most room columns of parts, the most telling first:
// those that do not fit are dropped, and path is cut to what is left.
func Fit(parts []string, path string, room int) string {
	line := ""
	for _, p := range parts {
		if line != "" {
			p = ", " + p
		}
		if width(line)+width(p) <= room {
			line += p
		}
	}
	left := room - width(line) - len(", ")
	if path == "" || left < leastPath || line == "" {
		return line
	}
	return line + ", " + Tail(path, left)
}

// Tail quotes path so that it takes at most room columns. Of a longer path it
// returns the end, which is what changes.
func Tail(path string, room int) string {
	text := Quote(path)
	if width(text) <= room {
		return text
	}
	text = text[1 : len(text)-1]
	room -= width(`"…"`)
	from := len(text)
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:from])
		if room -= columns(r); room < 0 {
			break
		}
		from -= size
	}
	return `"…` + text[from:] + `"`
}

// width returns how many columns s takes at most.
func width(s string) (n int) {
	for _, r := range s {
		n += columns(r)
	}
	return n
}

// columns returns how many columns r takes at most: terminals and fonts differ, but
// no character is wider than two.
func columns(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	return 2
}
