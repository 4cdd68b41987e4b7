// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"fmt"
	"strings"
	"testing"
)

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
