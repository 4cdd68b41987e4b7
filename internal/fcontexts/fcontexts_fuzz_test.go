// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// FuzzPattern: what the automaton takes, it matches as package regexp does, and as regexp2
// does; and what it does not take is compiled or refused.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{"/a(/.*)?", "/[^/]+/x{2,3}", `/a\.b|c`, "/(a|b(c|))*", `/[]\w-]+?`, "/a{2}", "/(?!a)b", "/[a-c-e]", "/(((", `/a\`, "/{2}", "/x{,3}", "/(?:)?b", "/((|){9000}){9000}", `/a\x20\Q.\E`, "/(?i)k", "/a++b", `/(a)\1\R`, "/[[:^alpha:]]"} {
		f.Add(p, "/a/b", "/abc")
	}
	f.Fuzz(func(t *testing.T, pattern, path, other string) {
		if strings.ContainsFunc(pattern, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || len(pattern) > 200 {
			return
		}
		text, err := translate(pattern)
		if err != nil {
			return
		}
		hard := compileHard("", text, nil)
		s := newSet()
		s.rules = []Rule{{}}
		start, ok := s.compile(text, 0, true)
		if !ok || hard.err != nil {
			return
		}
		re, err := regexp.Compile("(?s)^(?:" + text + `)\n?$`)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{path, other, pattern, pattern + "\n", path + other} {
			matches := func(path string) bool {
				at := s.build([]uint32{start}, nil)
				for i := range len(path) {
					at = s.next(at, path[i])
				}
				return len(at.accept) > 0
			}
			short, ok := strings.CutSuffix(path, "\n")
			got, want := matches(path) || ok && matches(short), re.MatchString(string(runes(path)))
			if got != want {
				t.Fatalf("%q (%s) matches %q: %t, and for package regexp %t", pattern, text, path, got, want)
			}
			if also, err := hard.matches(runes(path)); err == nil && also != got {
				t.Fatalf("%q (%s) matches %q: %t, and for regexp2 %t", pattern, text, path, got, also)
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
