// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// hard is an expression that no automaton can match.
type hard struct {
	fixed []rune // what a path begins with that it could match
	re    *regexp2.Regexp
	err   error // why there is no re
}

// hardRules are those that apply in a directory.
type hardRules struct {
	path  string // of the directory, with a slash at the end
	rules []int32
}

// An expression may take patience on a path, and has some tries, since regexp2 looks at the clock,
// which runs on while the process is stopped. PCRE2 gives up too, after ten million steps as
// libselinux 3.11 has it; there that counts as no match, and a file gets the label of another
// rule.
const (
	patience = time.Second
	tries    = 3
)

// compileHard compiles what translate made of pattern. If neither it nor regexp2 could read
// that, it is an error for each path that begins as the pattern does.
func compileHard(pattern, text string, err error) *hard {
	h := &hard{err: err}
	if i := strings.IndexAny(pattern, meta+`\`); i > 0 && !strings.Contains(pattern, "|") {
		if strings.IndexByte("?*{", pattern[i]) >= 0 {
			i--
		}
		h.fixed = runes(pattern[:i])
	}
	if err == nil {
		h.re, h.err = regexp2.Compile("^"+text+"$", regexp2.Singleline)
	}
	if h.err == nil {
		h.re.MatchTimeout = patience
	}
	return h
}

func (h *hard) matches(path []rune) (match bool, err error) {
	if len(path) < len(h.fixed) || !slices.Equal(path[:len(h.fixed)], h.fixed) {
		return false, nil
	}
	if h.err != nil {
		return false, h.err
	}
	for range tries {
		if match, err = h.re.MatchRunes(path); err == nil {
			return match, nil
		}
	}
	return false, fmt.Errorf("it takes longer than %v", patience)
}

// runeOf returns the rune that stands for b. Beyond ASCII it is no letter and no space.
func runeOf(b byte) rune {
	if b >= 0x80 {
		return 0xe000 + rune(b)
	}
	return rune(b)
}

func runes(s string) (path []rune) {
	for i := range len(s) {
		path = append(path, runeOf(s[i]))
	}
	return path
}
