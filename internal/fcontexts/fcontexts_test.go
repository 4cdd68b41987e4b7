// SPDX-License-Identifier: Apache-2.0

package fcontexts

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// write writes a policy: by suffix, what its files hold. It returns the first of them.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file_contexts")
	for suffix, text := range files {
		treetest.Must(t, os.WriteFile(file+suffix, []byte(text), 0o600))
	}
	return file
}

func load(t *testing.T, files map[string]string) *Set {
	t.Helper()
	s, err := Load(write(t, files))
	treetest.Must(t, err)
	return s
}

func label(r *Rule, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case r == nil:
		return "no rule"
	case r.Context == "":
		return "none"
	}
	return r.Context
}

// TestLookup has what versions of libselinux agree on, and, where they do not, what
// the package's comment promises.
func TestLookup(t *testing.T) {
	s := load(t, map[string]string{
		"": `
/.*                     any
/usr(/.*)?              usr
/usr/(.*/)?bin(/.*)?    bin
/usr/bin/x        --    x
/usr/bin/x.?      -d    dir
/usr/bin/[y-z]    -l    link
/etc/passwd             passwd
/var/lib(/.*)?          lib
/var/.*/keep      --    <<none>>
/run/*socket            socket
/a\-b/c.*               escaped
/lost\+found            lost
/lost\+found/.*         <<none>>
/same                   first
/same             --    second
/twice                  once
/deep/er/.*             <<none>>
/deep/.*                deep
/look/(?!no).*          ahead
/one/[a-z]+|/two        either
`,
		".homedirs":  "/home/[^/]+/.+\thome\n",
		".local":     "/twice again\n/twice more\n/usr/bin/local.*\tlocal\n/usr/bin(/.*)?  -b   block\n",
		".subs":      "/alias /usr/bin\n/alias/deeper /etc\n/self /\n/hidden/deeper /etc\n/hidden /usr/bin\n",
		".subs_dist": "/lib /var/lib\n/etc/lib /var/lib\n/usr/bin/sub/x /etc\n",
	})
	for _, c := range []struct {
		path string
		kind Kind
		want string
	}{
		{"/", Folder, "any"},
		{"//", Folder, "any"},
		{"/usr", Folder, "usr"},
		{"/usr/", Folder, "usr"},
		{"///usr////bin/", Folder, "bin"},
		{"/usr/share/bin", Folder, "bin"},
		{"/usr/bin/x", File, "x"},
		{"/usr/bin/x", Link, "bin"},
		{"/usr/bin/x", Folder, "dir"},
		{"/usr/bin/xx", Folder, "dir"},
		{"/usr/bin/y", Link, "link"},
		{"/usr/bin/y", 0, "block"}, // an unknown kind fits all
		{"/usr/bin/x", 0, "x"},
		{"/usr/bin/local\xff\n", File, "local"},
		{"/usr/bin/local", Block, "block"},
		{"/etc/passwd", File, "passwd"},
		{"/etc/passwd\n", File, "any"},
		{"/usr/bin/x\n", Folder, "dir"},
		{"/usr/bin\n", Folder, "bin"},
		{"/usr/bin\n\n", Folder, "usr"},
		{"/var/lib/keep", File, "none"},
		{"/var/lib/keep", Folder, "lib"},
		{"/run/socket", Socket, "socket"},
		{"/run/a/socket", Socket, "any"},
		{"/runsocket", Socket, "any"},
		{"/a-b/cd", File, "escaped"},
		{"/lost+found", Folder, "lost"},
		{"/lost+found/#1", File, "none"},
		{"/same", File, "first"},
		{"/same", Folder, "first"},
		{"/deep/er/x", File, "none"}, // though it was read before a rule that begins higher up
		{"/deep/x", File, "deep"},
		{"/twice", File, "again"},
		{"/look/at", File, "ahead"},
		{"/look/at\xc3", File, "ahead"},
		{"/look/no", File, "any"},
		{"/look/nothing/here", File, "any"},
		{"/look/a/b/c", File, "ahead"},
		{"/one/abc/more", File, "either"},
		{"/two", File, "any"}, // not beneath /one, which the pattern begins with
		{"/home/u/.ssh", Folder, "home"},
		{"/alias", Folder, "bin"},
		{"/alias/x", File, "x"},
		{"/alias/deeper/passwd", File, "passwd"}, // by the line read last
		{"/hidden/deeper/passwd", File, "bin"},
		{"/alias/sub/x/passwd", File, "passwd"},
		{"/aliasx", File, "any"},
		{"/self/usr/bin/x", File, "x"},
		{"/self", Folder, "any"},
		{"/lib", Folder, "lib"},
		{"/lib/keep", File, "none"},
		{"/etc/lib/keep", File, "none"},
		{"/self/lib", Folder, "lib"},
		{"relative", File, "no rule"},
		{"", File, "no rule"},
	} {
		if got := label(s.Lookup(c.path, c.kind)); got != c.want {
			t.Errorf("Lookup(%q, %d) = %s, want %s", c.path, c.kind, got, c.want)
		}
		if path := clean(c.path); strings.HasPrefix(path, "/") && path != "/" {
			end := strings.LastIndexByte(path, '/')
			if got := label(s.Dir(path[:end]).Lookup([]byte(path[end+1:]), c.kind)); got != c.want {
				t.Errorf("%q of kind %d by its directory: %s, want %s", c.path, c.kind, got, c.want)
			}
		}
	}
	if r, _ := s.Lookup("/usr/bin/x", File); r.Line != 5 || !strings.HasSuffix(r.File, "/file_contexts") || r.Pattern != "/usr/bin/x" || r.Kind != File {
		t.Errorf("the rule is %+v", r)
	}
}

func TestMalformed(t *testing.T) {
	for _, c := range []struct{ suffix, text, want string }{
		{"", "/a", `file_contexts:1: "/a" has no context`},
		{"", "\n# /b\n/a -x u:r:t\n", `file_contexts:3: "-x" is not a kind of file: not one of -- -b -c -d -l -p -s`},
		{"", "/a u:r:t more\n", `file_contexts:1: "u:r:t" is not a kind of file: not one of -- -b -c -d -l -p -s`},
		{".homedirs", "/a x\n/\xc3\xa4 u:r:t", `file_contexts.homedirs:2: "/ä" has a byte that is not ASCII`},
		{"", "/\x00 u:r:t", `file_contexts:1: "/\x00" has a byte that is not ASCII`},
		{"", "/a u:r:" + strings.Repeat("t", 0xffff), `file_contexts:1: a field has more than 65534 bytes`},
		{"", "\x8a\xff\x7c\xf9", "file_contexts: compiled file contexts; the text that they were made of is needed"},
		{".subs", "# a\n/a b\n", `file_contexts.subs:2: "b" is not an absolute path`},
		{".subs_dist", "/a /" + strings.Repeat("b", 1023) + "\n", "file_contexts.subs_dist:1: a line has more than 1022 bytes"},
		{".subs_dist", "/a\x00 /b\n", "file_contexts.subs_dist:1: a line has a null byte"},
	} {
		files := map[string]string{"": "/.* u:r:t\n"}
		files[c.suffix] = c.text
		file := write(t, files)
		_, err := Load(file)
		if err == nil || err.Error() != filepath.Dir(file)+"/"+c.want {
			t.Errorf("%s %.20q: %v, want %s", c.suffix, c.text, err, c.want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	// What libselinux reads too: more fields, spaces of all kinds, no newline at the end.
	s := load(t, map[string]string{"": "\t/a\v--\fu:r:a\rmore \xff\n \n #\n/b u:r:b"})
	if a, b := label(s.Lookup("/a", File)), label(s.Lookup("/b", File)); a != "u:r:a" || b != "u:r:b" {
		t.Errorf("read as %s and %s", a, b)
	}
}

func TestLoadedFile(t *testing.T) {
	for config, want := range map[string]string{
		"-":                   "targeted",
		"SELINUX=enforcing\n": "targeted",
		"SELINUXTYPE=mls":     "mls",
		"#SELINUXTYPE=x\n selinuxtype= a \r\nSELINUXTYPE=\n": "a",
		"SELINUXTYPE=a\nSELINUXTYPE=b\n":                     "b",
	} {
		root := t.TempDir()
		if config != "-" {
			treetest.Must(t, os.MkdirAll(root+"/etc/selinux", 0o700))
			treetest.Must(t, os.WriteFile(root+"/etc/selinux/config", []byte(config), 0o600))
		}
		if file, err := LoadedFile(root); err != nil || file != root+"/etc/selinux/"+want+"/contexts/files/file_contexts" {
			t.Errorf("%q: %s, %v", config, file, err)
		}
	}
	root := t.TempDir()
	treetest.Must(t, os.MkdirAll(root+"/etc/selinux/config", 0o700))
	if file, err := LoadedFile(root); err == nil {
		t.Errorf("a configuration that cannot be read: %s", file)
	}
}

// TestUnusable: a pattern that is wrong, or that nothing here can match, is an error for the
// paths that it might be about, and for these alone.
func TestUnusable(t *testing.T) {
	for _, pattern := range []string{
		"(y", "[y", ")y", "**", "{2}{3}", "{3,2}", "{,3}", "{70000}", `\`, `[b-a]`, `[\d-z]`, `[[.a.]]`, `[[:foo:]]`, `\l`, `\400`, `\x{100}`, `\x{`,
		`\N{U+61}`, `\p{Nothing}`, `(?i)\p{Lu}`, "(?R)?", "(a)(?1)", `(?<n>a)\g<n>`, `\2(a)`, `\k<n>`, `(?n)(a)(?<n>b)\1`, "(*COMMIT)y", "(*UTF)", "(?x)a#b",
		"(?z)", "(?(DEFINE)a)", "(?(R)a)", "(?>(?U)a+)", "(?U:a+)",
	} {
		s := load(t, map[string]string{"": "/.* any\n/a/xx" + pattern + " -- bad\n/a/xxlater last\n/a/xx.*last last\n"})
		for path, want := range map[string]string{"/a": "any", "/b/x": "any", "/a/y": "any", "/a/xxlater": "last", "/a/xxlast": "last", "/a/xx": "file_contexts:2: /a/xx" + pattern + ": "} {
			if got := label(s.Lookup(path, File)); got != want && (path != "/a/xx" || !strings.Contains(got, want)) {
				t.Errorf("%s: %s: %s", pattern, path, got)
			}
		}
		if got := label(s.Lookup("/a/xx", Folder)); got != "any" {
			t.Errorf("%s, a directory: %s", pattern, got)
		}
	}
}

// TestPatience: an expression that would take for ever is an error, and not another rule.
func TestPatience(t *testing.T) {
	s := load(t, map[string]string{"": "/a.* a\n/a/(?=x)(x+x+)+y b\n"})
	if got := label(s.Lookup("/a/xxxy", File)); got != "b" {
		t.Errorf("%s", got)
	}
	r, err := s.Lookup("/a/"+strings.Repeat("x", 200), File)
	if r != nil || err == nil || !strings.Contains(err.Error(), "/file_contexts:2: ") {
		t.Errorf("%+v, %v", r, err)
	}
}

// typical is made as policies are: what all have at the top, directories with all in
// them, paths, families of names, and alternatives.
const typical = `
/.*                                   default
/[^/]+                        --      root
/usr(/.*)?                            usr
/usr/.*\.cgi                  --      cgi
/usr/(.*/)?Bin(/.*)?                  bin
/usr/(.*/)?lib(/.*)?                  lib
/usr/(.*/)?sbin(/.*)?                 bin
/usr/share/doc(/.*)?/README.*         doc
/usr/share/(doc|man|info)(/.*)?       share
/usr/share/fonts(/.*)?                fonts
/usr/share/locale(/.*)?               locale
/usr/share/zoneinfo(/.*)?             locale
/usr/lib/.*/program(/.*)?             program
/usr/lib/(.*/)?lib[^/]+\.so(\.[^/]*)* --  textrel
/usr/lib/modules(/.*)?                modules
/usr/lib/systemd/system/ssh.*  --     unit
/usr/lib/udev/[^/]*            --     udev
/usr/bin/.*                           bin
/usr/bin/[xgkw]dm              --     dm
/usr/bin/pyth.*                --     python
/usr/bin/ssh                   --     ssh
/usr/sbin/.*d                  --     daemon
/usr/src(/.*)?                        src
/usr/src/[^/]+/\.config        --     <<none>>
/var(/.*)?                            var
/etc(/.*)?                            etc
/home/[^/]+/.+                        home
`

// walk visits the names of system trees: /usr and what is there, up to n entries.
func walk(t *testing.T, s *Set, n int, visit func(path string, d *Dir, name []byte)) {
	count := 0
	var in func(path string, d *Dir)
	in = func(path string, d *Dir) {
		list, err := os.ReadDir(path)
		if err != nil {
			return // gone, or not for this user
		}
		for _, e := range list {
			if count++; count > n {
				return
			}
			visit(filepath.Join(path, e.Name()), d, []byte(e.Name()))
			if e.IsDir() {
				in(filepath.Join(path, e.Name()), d.Child([]byte(e.Name())))
			}
		}
	}
	in("/usr", s.Dir("/usr"))
	if count < min(n, 1000) {
		t.Fatalf("only %d entries", count)
	}
}

// TestShared: the directories of a system share few states, no expression is matched by
// itself, and where a rule for all has the last word, names are not read at all.
func TestShared(t *testing.T) {
	s := load(t, map[string]string{"": typical})
	entries := 0
	walk(t, s, 20_000, func(_ string, d *Dir, name []byte) {
		label(d.Lookup(name, File))
		entries++
		if d.hard != nil {
			t.Fatalf("%s: %d expressions are left to regexp2", name, len(d.hard.rules))
		}
	})
	t.Logf("%d entries, %d states of %d words", entries, len(s.states), s.kept)
	if len(s.states) > 500 {
		t.Errorf("%d states for %d entries", len(s.states), entries)
	}
	for _, path := range []string{"/usr/share/locale/de/LC_MESSAGES", "/usr/lib/modules/6.1/kernel/net", "/etc/a/b", "/usr/share/fonts/x"} {
		d := s.Dir(path)
		label(d.Lookup([]byte("any"), File))
		if !d.at.flat() {
			t.Errorf("names in %s are read", path)
		}
	}
	for path, want := range map[string]string{
		"/usr/src/linux/a": "src", "/var/a": "var", "/etc": "etc", "/": "no", "/usr": "no", "/usr/share": "no", "/usr/src": "no",
		"/usr/share/fonts/x": "fonts", // its rule was read after /usr/(.*/)?Bin(/.*)?
		"/usr/lib/x":         "no",    // other than those after its own
	} {
		got := "no"
		if r, is := s.Dir(path).All(); is {
			got = label(r, nil)
		}
		if got != want {
			t.Errorf("all beneath %s: %s, want %s", path, got, want)
		}
	}
	if r, is := load(t, map[string]string{"": "/a/.* -- b\n"}).Dir("/a/x").All(); is {
		t.Errorf("all beneath /a/x have a label, by a rule for files: %+v", r)
	}
	if r, is := load(t, map[string]string{"": "/a b\n"}).Dir("/b").All(); r != nil || !is {
		t.Errorf("where nothing has a rule: %+v, %t", r, is)
	}
}

// TestBounded: goroutines that make the states together, in a set that may keep few of them,
// come to the same rules as one alone in a set that keeps all.
func TestBounded(t *testing.T) {
	free, tight := load(t, map[string]string{"": typical}), load(t, map[string]string{"": typical})
	tight.most = 150
	// Names beyond those of a system, each of which may need a state.
	ask := func(s *Set, path string) (all string) {
		for _, p := range []string{path, path + "/lib/\x80", path + ".so.1", path + "/program/sbin/x"} {
			all += label(s.Lookup(p, File)) + " "
		}
		return all
	}
	want := map[string]string{}
	walk(t, free, 1_000, func(path string, _ *Dir, _ []byte) { want[path] = ask(free, path) })
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got := map[string]string{}
			walk(t, tight, 1_000, func(path string, _ *Dir, _ []byte) { got[path] = ask(tight, path) })
			if !maps.Equal(got, want) {
				t.Error("another answer than alone, with all states")
			}
		})
	}
	wg.Wait()
	if tight.kept > tight.most || free.kept < 4*tight.most {
		t.Errorf("%d words are kept, and %d freely", tight.kept, free.kept)
	}
}

func TestAllocations(t *testing.T) {
	s := load(t, map[string]string{"": typical, ".subs": "/alias /usr\n"})
	d := s.Dir("/usr/share/doc")
	for name, f := range map[string]func(){
		"Lookup in a flat directory": func() { label(d.Lookup([]byte("copyright"), File)) },
		"Lookup of many rules":       func() { label(s.Dir("/usr").Child([]byte("lib")).Lookup([]byte("libc.so.6"), File)) },
		"Child":                      func() { d.Child([]byte("bash")).Child([]byte("examples")) },
	} {
		f()
		most := 0.0
		if name == "Lookup of many rules" {
			most = 1 // Dir itself, beneath which something is replaced
		}
		if n := testing.AllocsPerRun(100, f); n > most {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
