// SPDX-License-Identifier: Apache-2.0

package words

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

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
	var b strings.Builder
	b.WriteString("$'")
	for rest := word; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + rest[:n])
		case unprintable(r) || r == utf8.RuneError && n == 1:
			for _, c := range []byte(rest[:n]) {
				octal := strconv.FormatUint(uint64(c), 8)
				b.WriteString(`\` + strings.Repeat("0", 3-len(octal)) + octal)
			}
		default:
			b.WriteString(rest[:n])
		}
		rest = rest[n:]
	}
	return b.String() + "'"
}
