// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// FuzzPattern: what parse takes, the automaton matches as package regexp does, which
// knows all of it but a \s with \v in it; and what foreign lets through compiles or is
// refused.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{"/a(/.*)?", "/[^/]+/x{2,3}", `/a\.b|c`, "/(a|b(c|))*", `/[]\w-]+?`, "/a{2}", "/(?!a)b", "/[a-c-e]", "/(((", `/a\`, "/{2}", "/x{,3}", "/(?:)?b", "/((|){9000}){9000}"} {
		f.Add(p, "/a/b", "/abc")
	}
	f.Fuzz(func(t *testing.T, pattern, path, other string) {
		if pattern == "" || strings.ContainsFunc(pattern, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || len(pattern) > 200 {
			return
		}
		e, ok := parse(pattern)
		if !ok {
			if re, err := compileHard(pattern); re == nil && err == nil {
				t.Fatalf("%q is neither compiled nor refused", pattern)
			}
			return
		}
		re, err := regexp.Compile(`(?s)^` + strings.ReplaceAll(pattern, `\s`, `\x20`) + `\n?$`)
		if err != nil || strings.ContainsAny(pattern, "sS|") || strings.Contains(pattern, "{0") {
			return // nested repetitions, or more than a thousand, or {00}; | is about the anchors too
		}
		var a automaton
		a.init(nil)
		start := a.compile(e, 0, true)
		for _, path := range []string{path, other, pattern, pattern + "\n", path + other} {
			if strings.ContainsFunc(path, func(r rune) bool { return r == 0 || r >= 0x80 }) {
				continue
			}
			matches := func(path string) bool {
				at := a.build([]uint32{start}, nil)
				for i := range len(path) {
					at = a.next(at, path[i])
				}
				return len(at.accept) > 0
			}
			short, ok := strings.CutSuffix(path, "\n")
			if got, want := matches(path) || ok && matches(short), re.MatchString(path); got != want {
				t.Fatalf("%q matches %q: %t, and for package regexp %t", pattern, path, got, want)
			}
		}
	})
}

// FuzzLoad: whatever the files hold, they are refused with a line, or every path has
// the same answer by its directory and by itself.
func FuzzLoad(f *testing.F) {
	f.Add("/.* a\n/a(/.*)? -- b\n", "/x /a\n", "/a/b/c")
	f.Add("/a/*b -d <<none>>\n/a/(?!b)c x\n", "/x/y /\n/a /x/y/\n", "/x/y//z\n")
	f.Add(strings.Repeat("/a[^b]{3}|c d\n", 3), "/ /a\n", "/")
	f.Add("/a\x00 b", "b c\n", "//")
	f.Fuzz(func(t *testing.T, contexts, subs, path string) {
		s := newSet()
		if err := s.addRules("f", contexts); err != nil {
			var line int
			if _, scan := fmt.Sscanf(err.Error(), "f:%d: ", &line); line == 0 && !strings.Contains(err.Error(), "compiled") {
				t.Fatalf("%v (%v)", err, scan)
			}
			return
		}
		if err := s.subs.local.read("f.subs", subs); err != nil {
			return
		}
		s.ready()
		if path = clean("/" + strings.ReplaceAll(path, "\x00", "")); path == "/" {
			label(s.Lookup(path, Folder))
			return
		}
		end := strings.LastIndexByte(path, '/')
		a, aerr := s.Lookup(path, File)
		b, berr := s.Dir(path[:end]).Lookup([]byte(path[end+1:]), File)
		if a != b || (aerr == nil) != (berr == nil) {
			t.Fatalf("%q: %+v (%v), and by its directory %+v (%v)", path, a, aerr, b, berr)
		}
	})
}
