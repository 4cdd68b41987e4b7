// SPDX-License-Identifier: Apache-2.0

//go:build !race

package fcontexts

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// query is what libselinux and the set are asked.
type query struct {
	path string
	kind Kind
}

var allKinds = []Kind{Fifo, Char, Folder, Block, File, Link, Socket}

// build builds the program in testdata.
func build(t *testing.T, program string) string {
	treetest.Need(t, "gcc")
	file := filepath.Join(t.TempDir(), program)
	if out, err := exec.Command("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", file, "testdata/"+program+".c", "-lselinux").CombinedOutput(); err != nil {
		treetest.Lack(t, "gcc", fmt.Errorf("libselinux1-dev: %w\n%s", err, out))
	}
	return file
}

// asked is what libselinux answers to each query by the file contexts file.
func asked(t *testing.T, oracle, file string, queries []query) []string {
	t.Helper()
	var in bytes.Buffer
	for _, q := range queries {
		in.WriteByte(byte(q.kind))
		in.WriteString(q.path)
		in.WriteByte(0)
	}
	cmd := exec.Command(oracle, file)
	cmd.Stdin = &in
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	treetest.Must(t, err)
	answers := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(answers) != len(queries) {
		t.Fatalf("%d answers to %d queries", len(answers), len(queries))
	}
	return answers
}

// compare asks both about every query: the set by path, and by directory as a walk does.
func compare(t *testing.T, oracle, file string, s *Set, queries []query) {
	t.Helper()
	old := shortStems(t, oracle)
	answers := asked(t, oracle, file, queries)
	differ, labelled, left := 0, 0, 0
	name := func(r *Rule, err error) string {
		treetest.Must(t, err)
		if r == nil || r.Context == "" {
			return "-"
		}
		return r.Context
	}
	for i, q := range queries {
		if exactBeforeNewline(s, q) {
			left++
			continue
		}
		r, err := s.Lookup(q.path, q.kind)
		got := []string{name(r, err)}
		if path := clean(q.path); path != "/" {
			end := strings.LastIndexByte(path, '/')
			got = append(got, name(s.Dir(path[:end]).Lookup([]byte(path[end+1:]), q.kind)))
		}
		if answers[i] != "-" {
			labelled++
		}
		if slices.ContainsFunc(got, func(g string) bool { return g != answers[i] }) {
			if old && besideStem(t, s, q, answers[i]) {
				left++
				continue
			}
			if differ++; differ <= 20 {
				var by []Rule
				for _, r := range s.rules {
					if r.Context == answers[i] {
						by = append(by, r)
					}
				}
				t.Errorf("%q of kind %d: got %q by %+v; libselinux says %s, by %+v", q.path, q.kind, got, r, answers[i], by)
			}
		}
	}
	beyond := 0
	for i := range s.rules {
		if s.rules[i].hard != nil {
			beyond++
		}
	}
	t.Logf("%d rules, %d of regexp2, %d queries, %d with a label, %d left out, %d differ", len(s.rules), beyond, len(queries), labelled, left, differ)
	if labelled == 0 {
		t.Error("no path has a label")
	}
}

// shortStems tells a libselinux that wants only the first directory that a pattern begins
// with, as 3.7 and older do.
func shortStems(t *testing.T, oracle string) bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file_contexts")
	treetest.Must(t, os.WriteFile(file, []byte("/a/b/*c u:r:t:s0\n"), 0o600))
	return asked(t, oracle, file, []query{{"/a/bc", File}})[0] != "-"
}

// kindFirst tells a libselinux that takes the line with a kind, of two for one exact path, as 3.8
// does.
func kindFirst(t *testing.T, oracle string) bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file_contexts")
	treetest.Must(t, os.WriteFile(file, []byte("/a -- u:r:t1:s0\n/a u:r:t2:s0\n"), 0o600))
	return asked(t, oracle, file, []query{{"/a", File}})[0] == "u:r:t1:s0"
}

// besideStem reports that answer is that of a rule which fits the path of q, but for the
// directories that it begins with.
func besideStem(t *testing.T, s *Set, q query, answer string) bool {
	t.Helper()
	path := s.subs.apply(clean(q.path))
	return slices.ContainsFunc(s.rules, func(r Rule) bool {
		if r.Context != answer || !r.fits(q.kind) || strings.HasPrefix(path, stem(r.Pattern)) {
			return false
		}
		text, err := translate(r.Pattern)
		fits, err := compileHard("", text, err).matches(runes(path))
		treetest.Must(t, err)
		return fits
	})
}

// exactBeforeNewline reports the other thing in which versions of libselinux differ on
// the paths made here: for 3.7 and older the exact path /a fits "/a\n" too.
func exactBeforeNewline(s *Set, q query) bool {
	path, ok := strings.CutSuffix(s.subs.apply(clean(q.path)), "\n")
	if !ok {
		return false
	}
	r, err := s.lookup(path, q.kind)
	if r == nil || err != nil {
		return false
	}
	_, exact := plain(r.Pattern)
	return exact
}

// sample appends a string that e matches, but for what only regexp2 knows.
func sample(r *rand.Rand, e *syntax.Regexp, b []byte) []byte {
	least, most := 1, 1
	switch e.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar:
		for {
			// Mostly letters, also of what is no ASCII; never a null byte.
			c := "abcxyz019._-/"[r.IntN(13)]
			if r.IntN(4) == 0 {
				c = byte(1 + r.IntN(255))
			}
			if e.Op == syntax.OpLiteral {
				for _, c := range e.Rune {
					b = append(b, byte(c))
				}
				return b
			}
			if (&syntax.Inst{Op: syntax.InstRune, Rune: e.Rune}).MatchRune(runes(string([]byte{c}))[0]) || e.Op == syntax.OpAnyChar {
				return append(b, c)
			}
		}
	case syntax.OpAlternate:
		return sample(r, e.Sub[r.IntN(len(e.Sub))], b)
	case syntax.OpStar:
		least, most = 0, 2
	case syntax.OpPlus:
		most = 3
	case syntax.OpQuest:
		least = 0
	case syntax.OpRepeat:
		if least, most = e.Min, e.Max; most < 0 {
			most = least + 2
		}
	}
	for range least + r.IntN(most-least+1) {
		for _, sub := range e.Sub {
			b = sample(r, sub, b)
		}
	}
	return b
}

// paths returns n paths for each rule: what it matches, and what is almost that.
func paths(r *rand.Rand, s *Set, n int) (list []string) {
	for i := range s.rules {
		for range n {
			path := s.rules[i].Pattern
			text, err := translate(path)
			e, alsoErr := syntax.Parse(text, syntax.PerlX|syntax.OneLine|syntax.DotNL|syntax.ClassNL)
			if err == nil && alsoErr == nil {
				path = string(sample(r, e, nil))
			}
			if !strings.HasPrefix(path, "/") {
				path = "/" + path
			}
			list = append(list, path, spoil(r, s, path))
		}
	}
	return list
}

// spoil changes path.
func spoil(r *rand.Rand, s *Set, path string) string {
	at := 1 + r.IntN(len(path))
	switch r.IntN(12) {
	case 0:
		return path + "\n"
	case 1:
		return path[:at] + "\n" + path[at:]
	case 2:
		return path[:at] + string([]byte{byte(0x80 + r.IntN(128))}) + path[at:]
	case 3:
		return path + "/"
	case 4:
		return strings.ReplaceAll(path, "/", "///")
	case 5:
		return path + strings.Repeat("/deep", 1+r.IntN(40))
	case 6:
		return path[:at]
	case 7:
		return path + "x"
	case 8:
		return path + "/\n"
	case 9:
		if at < len(path) {
			return path[:at] + path[at+1:] // may be relative: "/" stays
		}
	}
	if all := slices.Concat(s.subs.local, s.subs.dist); len(all) > 0 {
		if sub := all[r.IntN(len(all))]; sub.from[0] == '/' {
			if rest, ok := strings.CutPrefix(path, sub.to); ok {
				return sub.from + rest
			}
			return sub.from + path
		}
	}
	return "/other" + path
}

func ask(paths []string) (list []query) {
	for _, p := range paths {
		for _, k := range allKinds {
			list = append(list, query{p, k})
		}
	}
	return list
}

// TestOracle compares with libselinux: on policies made of all that the grammar has,
// and on the machine's own policy if it has one. FASTLABEL_CONTEXTS=FILE,FILE has it
// compare by those files instead, on every path of this system and a hundred for each
// rule.
//
// What that has found, on paths of their patterns, with Debian 12's policy (test/policy.sh),
// and those of the sources of Fedora's (October 2024) and refpolicy (July 2026), sorted, with
// HOME_DIR as /home/[^/]+:
//
//	Debian's 5,845 rules   163,660 queries  none differs, with libselinux 3.4 nor 3.11
//	Fedora's 6,500         182,000          none
//	refpolicy's 5,698      159,544          none
//
// Left out are 3.4's answers where /run/lock/subsys/*.ftpd matches /run/lock/subsysxftpd, and
// where /lib is replaced and "/lib\n" is not.
func TestOracle(t *testing.T) {
	oracle := build(t, "oracle")
	whole := os.Getenv("FASTLABEL_CONTEXTS")
	if whole == "" {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint("made/", seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 22))
				file := makePolicy(t, r, shortStems(t, oracle), kindFirst(t, oracle))
				s, err := Load(file)
				treetest.Must(t, err)
				compare(t, oracle, file, s, ask(paths(r, s, 2)))
			})
		}
		file, err := LoadedFile("")
		treetest.Must(t, err)
		if _, err := os.Stat(file); err != nil {
			return
		}
		s, err := Load(file)
		treetest.Must(t, err)
		r := rand.New(rand.NewPCG(1, 22))
		list := paths(r, s, 1)
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		compare(t, oracle, file, s, ask(list[:min(len(list), 300)]))
		return
	}
	for file := range strings.SplitSeq(whole, ",") {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			s, err := Load(file)
			treetest.Must(t, err)
			list := paths(rand.New(rand.NewPCG(1, 22)), s, 50)
			err = filepath.WalkDir("/", func(path string, _ fs.DirEntry, err error) error {
				if err != nil || path == "/proc" || path == "/sys" {
					return fs.SkipDir
				}
				list = append(list, path)
				return nil
			})
			treetest.Must(t, err)
			compare(t, oracle, file, s, ask(list))
		})
	}
}

// TestOraclePatterns: each of patterns matches, of all the names there, what it matches to
// libselinux.
func TestOraclePatterns(t *testing.T) {
	oracle := build(t, "oracle")
	var rules strings.Builder
	var queries []query
	for i, p := range patterns {
		fmt.Fprintf(&rules, "/p%d/%s u:r:t%d:s0\n", i, p.pattern, i)
		for _, q := range patterns {
			for _, name := range []string{q.is, q.isNot, q.is + "\n", q.is[:len(q.is)/2]} {
				queries = append(queries, query{fmt.Sprintf("/p%d/%s", i, name), File})
			}
		}
	}
	file := write(t, map[string]string{"": rules.String()})
	s, err := Load(file)
	treetest.Must(t, err)
	compare(t, oracle, file, s, queries)
}

// makePolicy writes a policy of some 600 rules with every construct of the grammar,
// with names that meet often, and returns its file.
func makePolicy(t *testing.T, r *rand.Rand, old, kinds bool) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	name := func() string {
		return pick("a", "b", "ab", "usr", "lib", "x.y", `x\.y`, `c\+`, `e\-f`, "lost\\+found", "_", "~", "a,b", "}", "]")
	}
	part := func() string {
		return pick(name(), name(), "[^/]*", "[^/]+", ".*", ".+", "[a-c]", "[^a-c/]+", "[]x]", "[x-]", `[\.\-x]`, "[0-9a-f]{2}", "x{1,3}", "(ab){2,}",
			"a?", "(a|b)", "(a|b|)", "((a)|(lib))", "(?:a|b)+", "lib(32|64)?", "a.b", ".", "a*?b", `\d+`, `\w`, `[\w.]+`, `\S+`, `[^\s]`, `\D`,
			"(a|ab)(b|)", "(.*/)?lib", "([^/]*/)*b",
			`\x61`, `\Qa.b\E`, `[[:alpha:]]+`, `[\w-]`, `\141\h?x`, `(?i)[^a]`, `(?i:B)c`, `[^[:digit:]/]`, `\N`, `(?#c)b`, `(?^s)a`)
	}
	hard := func() string {
		return pick(`a++[^/]*`, `[ab]*+\w`, `(?<n>a|b)\k<n>`, `([ab])\g{-1}+`, `[\xe0-\xe8]|\xe9`, `a?+b`, `(?(?=a)a|b)`, "(?!a)[^/]*", "(?=x).*", ".*(?<!b)", `(a|b)\d*\1`, `\bab\b`, "(?>a*)b?", "a$", "b$", `.*\z`)
	}
	pattern := func() string {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteString("/")
			switch r.IntN(3) {
			case 0:
				b.WriteString(part())
			case 1:
				b.WriteString(part() + part())
			default:
				b.WriteString(name())
			}
		}
		switch r.IntN(6) {
		case 0, 1:
			b.WriteString("(/.*)?")
		case 2:
			b.WriteString(pick("/.*", "/[^/]*", "/.+", ".*", "(/[^/]+)?", "(/a)*"))
		case 3:
			if r.IntN(3) == 0 {
				b.WriteString("/" + hard())
			}
		}
		return b.String()
	}
	file := filepath.Join(t.TempDir(), "file_contexts")
	// Old versions take the last of two exact paths, <<none>> as any other context, and /\d and
	// /] for exact; they want /] before another alternative too, and never find what is
	// beneath /a\-b.
	seen := map[string]bool{}
	stem := regexp.MustCompile(`^/[^/.^$?*+|[({\\]*\\[^/.^$?*+|[({]*/`)
	escaped := regexp.MustCompile(`\\.`)
	doubtful := func(p string) bool {
		_, exact := plain(p)
		alsoExact := !strings.ContainsAny(escaped.ReplaceAllString(p, ""), ".^$?*+|[({")
		return kinds && seen[p] && exact || old && (seen[p] && exact || alsoExact != exact || stem.MatchString(p) || strings.HasSuffix(p, `|\xe9`))
	}
	for i, suffix := range []string{"", ".homedirs", ".local"} {
		var b strings.Builder
		fmt.Fprintf(&b, "# made\n\n  \t\n")
		line := func(p, context string) {
			if !doubtful(p) {
				fmt.Fprintf(&b, "%s%s\t%s%s\n", pick("", "", " ", "\t"), p, pick("", "", "", "-- ", "-d\t", "-l ", "-p ", "-s ", "-b ", "-c "), context)
			}
			seen[p] = true
		}
		for n := range []int{300, 100, 60}[i] {
			context := fmt.Sprintf("u:r:t%d_%d:s0%s", i, n, pick("", "  ", "\r\v"))
			if !old && r.IntN(10) == 0 {
				context = "<<none>>"
			}
			line(pattern(), context)
		}
		if i == 2 {
			for range 30 {
				line("/lib"+pattern(), "<<none>>")
			}
			for _, odd := range []string{"/run/*a", "/a/*b(/.*)?", "/usr/?", "/", "/(/.*)?", "/usr.*|/b", "/usr/a.*|b|/a/b"} {
				line(odd, "<<none>>")
			}
		}
		treetest.Must(t, os.WriteFile(file+suffix, []byte(b.String()), 0o600))
	}
	above := " /q /usr \n"
	if kinds { // and takes the first line that fits, not the last
		above = ""
	}
	for suffix, text := range map[string]string{
		".subs_dist": "# comment\n/run /var/run\n/q/a /a\n" + above + "/w /\n/alone\n/loop /loop/loop\n/ab/usr/lib /lib\n/deep/er /a/b/usr\n",
		".subs":      "/z /run\n/s /q/\n/m /deep\n/a/ /b\n/e /a/b\n/q/b/a\t/b",
	} {
		treetest.Must(t, os.WriteFile(file+suffix, []byte(text), 0o600))
	}
	return file
}

// TestChangeOracle: libselinux's own restorecon would change the same, of labels that
// files have.
func TestChangeOracle(t *testing.T) {
	treetest.Need(t, "plain")
	oracle := build(t, "change")
	dir := treetest.Fresh(t, "tmpfs")
	contexts := filepath.Join(dir, "file_contexts")
	var rules strings.Builder
	var paths []string
	for i, c := range changes {
		path := filepath.Join(dir, fmt.Sprint("f", i))
		paths = append(paths, path)
		fmt.Fprintf(&rules, "%s %s\n", path, c.want)
		treetest.Must(t, os.WriteFile(path, nil, 0o600))
		if c.have == "" {
			continue
		}
		treetest.Must(t, syscall.Setxattr(path, "security.selinux", []byte(c.have+"\x00"), 0))
	}
	treetest.Must(t, os.WriteFile(contexts, []byte(rules.String()), 0o600))
	would := regexp.MustCompile(`^Would relabel \S+ from (?s:.*) to (\S.*)\n0$`)
	for _, part := range []string{"type", "all"} {
		for i, c := range changes {
			out, err := exec.Command(oracle, contexts, part, paths[i]).Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			want := c.typ
			if part == "all" {
				want = c.all
			}
			got := "not understood"
			text := strings.TrimSuffix(string(out), "\n")
			switch m := would.FindStringSubmatch(text); {
			case m != nil:
				got = m[1]
			case text == "0":
				got = ""
			case strings.HasSuffix(text, "\n-1"):
				got = "error"
			}
			if got != want {
				t.Errorf("from %q to %q, %s: libselinux has %q (%q), want %q", c.have, c.want, part, got, text, want)
			}
		}
	}
}
