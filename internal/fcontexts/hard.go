// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// hardRule is an expression that no automaton can say.
type hardRule struct {
	rule int32
	re   *regexp2.Regexp
}

// hardRules are those that apply in a directory, the last first.
type hardRules struct {
	path  string // of the directory, with a slash at the end
	rules []hardRule
}

// An expression may take patience on a path, and has some tries, since regexp2 looks at
// the clock, which runs on while the process is stopped. PCRE2 gives up too, after ten
// million steps as libselinux 3.11 has it; there that counts as no match, and a file gets
// the label of another rule.
const (
	patience = time.Second
	tries    = 3
)

// compileHard compiles what parse does not know.
func compileHard(pattern string) (*regexp2.Regexp, error) {
	if part := foreign(pattern); part != "" {
		return nil, fmt.Errorf("%q is not supported in %q", part, pattern)
	}
	re, err := regexp2.Compile("^"+pattern+"$", regexp2.Singleline)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
	}
	re.MatchTimeout = patience
	return re, nil
}

// foreign returns a part of pattern that regexp2, which follows .NET, does not know or
// takes for something else than PCRE2 does: options, names, calls, verbs, possessive
// quantifiers, and most escapes. What is left are assertions, atomic groups,
// references, classes and anchors.
func foreign(pattern string) string {
	const kept = "dDwWsS"
	in := false // within brackets
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		after := func(list ...string) bool {
			for _, s := range list {
				if strings.HasPrefix(rest[1:], s) {
					return true
				}
			}
			return false
		}
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			i++
			letter := pattern[i]
			if letter|0x20 >= 'a' && letter|0x20 <= 'z' || letter >= '0' && letter <= '9' {
				if !strings.ContainsRune(kept, rune(letter)) && (in || !strings.ContainsRune("bBAzZ123456789", rune(letter))) {
					return rest[:2]
				}
			}
		case in:
			in = c != ']'
			if c == '[' && after(":", ".", "=") || c == '-' && after("[") {
				return rest[:2]
			}
		case c == '[':
			in = true
			if after("^") {
				i++
			}
			if strings.HasPrefix(pattern[i+1:], "]") { // the first is no end
				i++
			}
		case c == '(':
			if after("*") || after("?") && !after("?:", "?=", "?!", "?>", "?<=", "?<!") {
				return rest[:2]
			}
			if after("?") {
				i++
			}
		case strings.IndexByte("*+?}", c) >= 0 && after("+"), c == '{' && after(","):
			return rest[:2]
		}
	}
	return ""
}

// first returns the last rule after best that matches name, and best if none does.
func (h *hardRules) first(s *Set, name []byte, kind Kind, best int32) (int32, error) {
	var path []rune
	for _, r := range h.rules {
		if r.rule <= best {
			break
		}
		if !s.rules[r.rule].fits(kind) {
			continue
		}
		if path == nil {
			path = appendRunes(appendRunes(path, h.path), string(name))
		}
		match, err := r.matches(path)
		if err != nil {
			rule := &s.rules[r.rule]
			return best, lineError(rule.File, rule.Line, "the expression takes longer than %v", patience)
		}
		if match {
			return r.rule, nil
		}
	}
	return best, nil
}

func (r hardRule) matches(path []rune) (match bool, err error) {
	for range tries {
		if match, err = r.re.MatchRunes(path); err == nil {
			break
		}
	}
	return match, err
}

// appendRunes appends the bytes of s, of which those beyond ASCII are nothing but
// bytes: no letters and no spaces.
func appendRunes(path []rune, s string) []rune {
	const private = 0xe000
	for i := range len(s) {
		r := rune(s[i])
		if r >= 0x80 {
			r += private
		}
		path = append(path, r)
	}
	return path
}
