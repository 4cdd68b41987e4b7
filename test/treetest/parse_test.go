// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, text := range []string{
		"node b", "file", "file ../x", "file /x", "file a//b", "file \"a", "link a", "char a 1", "mount a bind",
		"file a ro", "file a mode=9", "file a x3", "file a%d x0", "deep a 5 5", "names a", "file a\nfile a", "file a/b\ndir a",
	} {
		if _, err := Parse("t", text); err == nil || !strings.HasPrefix(err.Error(), "t:") {
			t.Errorf("%q: %v", text, err)
		}
	}
	tr := Text(t, "file a\ndefault label=L\nfile b/c # c\nfile d label=-\nfile \"label=e\\x00\" label=\"-\" mode=4755\nhardlink h a\n"+
		"mount r ramfs\nfile r/f\nmount r/t tmpfs ro\nfile r/t/f%02d x2\ndeep x x1 3 mode=700\nmount y bind b ro\nchar z 1:3")
	given := Context{Given, "L"}
	want := []Entry{
		{Kind: File, Path: "a", line: 1},
		{Kind: Dir, Path: "b", Label: given, line: 3, implied: true},
		{Kind: File, Path: "b/c", Label: given, line: 3},
		{Kind: File, Path: "d", Label: Context{Says: Absent}, line: 4},
		{Kind: File, Path: "label=e\x00", Label: Context{Given, "-"}, Mode: 0o4755, HasMode: true, line: 5},
		{Kind: Hardlink, Path: "h", Target: "a", line: 6},
		{Kind: Mount, Path: "r", FS: "ramfs", line: 7},
		{Kind: File, Path: "r/f", line: 8},
		{Kind: Mount, Path: "r/t", FS: "tmpfs", ReadOnly: true, Label: given, line: 9},
		{Kind: File, Path: "r/t/f00", Label: given, line: 10},
		{Kind: File, Path: "r/t/f01", Label: given, line: 10},
		{Kind: Dir, Path: "x", Label: given, Mode: 0o700, HasMode: true, line: 11},
		{Kind: Dir, Path: "x/001", Label: given, line: 11},
		{Kind: File, Path: "x/001/leaf", Label: given, line: 11},
		{Kind: Mount, Path: "y", FS: "bind", Target: "b", ReadOnly: true, line: 12},
		{Kind: Char, Path: "z", Major: 1, Minor: 3, Label: given, line: 13},
	}
	if !slices.Equal(tr.Entries, want) {
		t.Errorf("%+v", tr.Entries)
	}
}
