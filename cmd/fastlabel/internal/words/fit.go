// SPDX-License-Identifier: Apache-2.0

package words

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

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
		if uniseg.StringWidth(line)+uniseg.StringWidth(p) <= room {
			line += p
		}
	}
	left := room - uniseg.StringWidth(line) - len(", ")
	if path == "" || left < leastPath || line == "" {
		return line
	}
	return line + ", " + Tail(path, left)
}

// Tail quotes path so that it takes at most room columns: of a longer one it is
// the end, since what changes is there. Characters may be two columns wide, or
// none, of which a name can hold any number: the bytes are bounded as well.
func Tail(path string, room int) string {
	const most = 4 // bytes a column: UTF-8's longest character
	cut := len(path) > most*room
	if cut {
		path = path[len(path)-most*room:]
		for path != "" && !utf8.RuneStart(path[0]) {
			path = path[1:]
		}
	}
	text := Quote(path)
	if !cut && uniseg.StringWidth(text) <= room {
		return text
	}
	text = text[1 : len(text)-1]
	room -= len(`"…"`) - len("…") + 1
	var ends []int // where each character begins
	var widths []int
	for rest, state, at := text, -1, 0; rest != ""; {
		var c string
		var w int
		c, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		ends, widths = append(ends, at), append(widths, w)
		at += len(c)
	}
	from := len(text)
	for i := len(ends) - 1; i >= 0 && widths[i] <= room; i-- {
		room -= widths[i]
		from = ends[i]
	}
	return `"…` + strings.TrimLeft(text[from:], "\u200d") + `"`
}
