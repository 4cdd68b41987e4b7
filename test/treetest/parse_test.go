// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const trees = "../../testdata/trees"

// lineless forgets where the entries were written.
func lineless(tr *Tree) []Entry {
	out := append([]Entry(nil), tr.Entries...)
	for i := range out {
		out[i].line = 0
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(trees, "*.txt"))
	if err != nil || len(files) < 12 {
		t.Fatalf("trees: %q, %v", files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		one, err := Parse(filepath.Base(f), string(text))
		if err != nil {
			t.Fatal(err)
		}
		two, err := Parse("again", one.String())
		if err != nil {
			t.Fatalf("%s: its own text: %v", f, err)
		}
		if !reflect.DeepEqual(lineless(one), lineless(two)) {
			t.Errorf("%s changes by the round trip:\n%s", f, two)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("dir . label=-\nfile \"a\\xff b\" label=\"x\\x00\" mode=4755 # end\nlink l \"label=x\"")
	f.Add("deep d x3 7\nnames n every-byte\nfile f/%02d x2\nmount m bind f ro\nchar c 1:3\nhardlink h f/00")
	f.Add("default label=\"-\"\nmount m ramfs\nfile m/f\nfile \"mode=1\"")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, "x") > 40 || len(text) > 400 || strings.Contains(text, "000") {
			t.Skip("large repeats only take time")
		}
		one, err := Parse("fuzz", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fuzz:") {
				t.Errorf("an error without its place: %v", err)
			}
			return
		}
		two, err := Parse("again", one.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, one)
		}
		if !reflect.DeepEqual(lineless(one), lineless(two)) {
			t.Errorf("%q becomes %q", one, two)
		}
	})
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"dir a\nnode b", `2: unknown kind "node"`},
		{"file", "1: file needs a path"},
		{"file ../x", `1: "../x" is not a clean path below the root`},
		{"file /x", `1: "/x" is not`},
		{"file .", `1: "." is not`},
		{"file a//b", `1: "a//b" is not`},
		{`file "a\x00b"`, `1: "a\x00b" is not`},
		{"file " + strings.Repeat("a", 256), "a name of 256 bytes"},
		{`file "a`, "1: unfinished or malformed quotes"},
		{`file "a"b`, "1: no blank after"},
		{"link a", "1: link needs a target"},
		{"hardlink a", "1: hardlink needs a path to link to"},
		{"char a 1", `1: "1" is not MAJOR:MINOR`},
		{"char a 1:3x", `1: "1:3x" is not MAJOR:MINOR`},
		{"mount a ext4", `1: cannot mount "ext4"`},
		{"mount a bind", "1: mount needs a path to show"},
		{"mount a bind b label=x", "1: its label is that of what it shows"},
		{"mount a ramfs label=x", "1: ramfs has no labels"},
		{"mount a ramfs\nfile a/b label=x", `2: "a/b" is on ramfs`},
		{"file a ro", `1: unknown option "ro"`},
		{"file a mode=9", `1: mode "9" is not octal`},
		{"link a b mode=7", "1: link takes no mode"},
		{"file a label=x label=y", "1: two labels"},
		{"file a x3", "1: a repeated path needs one %d"},
		{"file a%db%d x3", "1: a repeated path needs one %d"},
		{"file a%s%d x3", "1: a repeated path needs one %d"},
		{"file a%d x0", `1: "x0" is not xN`},
		{"socket a%d x2", "1: socket cannot be repeated"},
		{"deep a 5 5", `1: "5" is not xN`},
		{"deep a x100 2", `1: length "2": from 3 to 255`},
		{"names a", "1: names needs every-byte"},
		{"default", "1: default takes a label"},
		{"file a\n\n# c\nfile a", `4: "a" is made by line 1`},
		{"file a/b\ndir a", `2: "a" was made as a parent`},
	} {
		_, err := Parse("t", c.text)
		if err == nil || !strings.HasPrefix(err.Error(), "t:") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.text, err, c.want)
		}
	}
}

func TestExpandPutsLabels(t *testing.T) {
	tr, err := Parse("t", "file a\ndefault label=L\nfile b/c\nfile d label=-\nfile e label=M\nhardlink h a\n"+
		"mount r ramfs\nfile r/f\nmount r/t tmpfs\nfile r/t/f\ndefault label=-\nfile z")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := tr.Expand()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Context{}
	for _, e := range entries {
		got[e.Path] = e.Label
	}
	given := Context{Given, "L"}
	want := map[string]Context{
		"a": {}, "b": given, "b/c": given, "d": {Says: Absent}, "e": {Given, "M"}, "h": {},
		"r": {}, "r/f": {}, "r/t": given, "r/t/f": given, "z": {Says: Absent},
	}
	if d := Diff(want, got); len(d) > 0 {
		t.Error(strings.Join(d, "\n"))
	}
}

func TestDiff(t *testing.T) {
	if d := Diff(map[string]string{"a": "1"}, map[string]string{"a": "1"}); len(d) != 0 {
		t.Errorf("equal maps: %q", d)
	}
	d := Diff(map[string]string{"a": "1", "b": "2"}, map[string]string{"b": "3", "c": "4"})
	if got := strings.Join(d, "\n"); got != "- \"a\": \"1\"\n! \"b\": \"2\", \"3\"\n+ \"c\": \"4\"" {
		t.Error(got)
	}
	many := map[string]string{}
	for _, n := range AwkwardNames() {
		many[n] = strings.Repeat("x", 9999)
	}
	if d := Diff(many, nil); len(d) != 10 || len(strings.Join(d, "")) > 8192 {
		t.Errorf("%d lines", len(d))
	}
}
