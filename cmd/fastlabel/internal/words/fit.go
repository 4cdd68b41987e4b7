// SPDX-License-Identifier: Apache-2.0

package words

import "unicode/utf8"

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

// Fold breaks text that is wider than room behind commas and semicolons, where it can.
func Fold(text string, room int) string {
	var folded string
	for room > 0 && width(text) > room {
		at := 0
		for i := range text {
			if i > 1 && (text[i-2] == ',' || text[i-2] == ';') && text[i-1] == ' ' && (at == 0 || width(text[:i-1]) <= room) {
				at = i
			}
		}
		if at == 0 {
			break
		}
		folded += text[:at-1] + "\n"
		text = "  " + text[at:]
	}
	return folded + text
}

// Tail quotes path so that it takes at most room columns. Of a longer path it
// returns the end, which is what changes.
func Tail(path string, room int) string {
	const most = 2 // bytes a column: the longest characters have four, in two columns
	cut := len(path) > most*room
	if cut {
		path = path[len(path)-most*room:]
		for path != "" && !utf8.RuneStart(path[0]) {
			path = path[1:]
		}
	}
	text := Quote(path)
	if !cut && width(text) <= room {
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
