// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

// goOn is the command line that goes on where this run stopped, for a shell:
// the same flags, and of the operands those that are left. args is what stands
// behind the command's name.
func goOn(name string, c command, args, operands, left []string) string {
	words := []string{name}
	if c.name != "" {
		words = append(words, c.name)
	}
	// It was parsed before, so there is no error.
	_ = flagSet(new(settings), c.key).ParseAll(args, func(f *pflag.Flag, value string) error {
		word := "--" + f.Name
		if f.Name == "record" {
			value = nextRecord(value)
		}
		if f.NoOptDefVal == "" || value != f.NoOptDefVal {
			word += "=" + value
		}
		words = append(words, word)
		return nil
	})
	words = append(words, "--")
	undone := map[string]bool{}
	for _, l := range left {
		undone[l] = true
	}
	for _, o := range operands {
		if undone[o] {
			words = append(words, o)
		}
	}
	for i, w := range words {
		words[i] = forShell(w)
	}
	return strings.Join(words, " ")
}

// toGoOn stands before that line. A list that came through a pipe is gone.
func toGoOn(s *settings) string {
	switch {
	case s.filesFrom == "-":
		return "to go on, with the same list again on stdin: "
	case strings.HasPrefix(s.filesFrom, "/dev/"):
		return "to go on, with the same list again in " + brief(s.filesFrom) + ": "
	}
	return "to go on: "
}

// forShell quotes a word for a POSIX shell; a terminal shows all of it. What is
// not printable takes $'...', which POSIX has since 2024, bash, zsh and ksh for
// long, and dash not.
func forShell(word string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_"
	switch {
	case word != "" && word[0] != '=' && strings.Trim(word, harmless) == "":
		return word
	case clean(word) == word:
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
