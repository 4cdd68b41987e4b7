// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// growth is the state of Expand.
type growth struct {
	out    []Entry
	made   map[string]int // path to the line that made it; 0 for a parent
	mounts map[string]string
	def    Context
}

// Expand gives the plain entries that the lines stand for, in the order of
// making: repeats written out, parents and default labels put in. An error
// begins with the file and line.
func (tr *Tree) Expand() ([]Entry, error) {
	g := growth{made: map[string]int{".": 0}, mounts: map[string]string{}}
	for _, e := range tr.Entries {
		if err := g.grow(e); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", tr.Name, e.line, err)
		}
	}
	return g.out, nil
}

func (g *growth) grow(e Entry) error {
	switch {
	case e.Kind == Default:
		g.def = e.Label
		return nil
	case e.Kind == Deep:
		p := e.Path
		if err := g.add(Entry{Kind: Dir, Path: p, Label: e.Label, Mode: e.Mode, HasMode: e.HasMode, line: e.line}); err != nil {
			return err
		}
		for i := range e.Repeat {
			p += fmt.Sprintf("/%0*d", e.Length, i+1)
			if err := g.add(Entry{Kind: Dir, Path: p, Label: e.Label, line: e.line}); err != nil {
				return err
			}
		}
		return g.add(Entry{Kind: File, Path: p + "/leaf", Label: e.Label, line: e.line})
	case e.Kind == Names:
		if err := g.add(Entry{Kind: Dir, Path: e.Path, Label: e.Label, Mode: e.Mode, HasMode: e.HasMode, line: e.line}); err != nil {
			return err
		}
		for _, name := range AwkwardNames() {
			if err := g.add(Entry{Kind: File, Path: e.Path + "/" + name, Label: e.Label, line: e.line}); err != nil {
				return err
			}
		}
		return nil
	case e.Repeat > 0:
		one := e
		one.Repeat = 0
		for i := range e.Repeat {
			one.Path = fmt.Sprintf(e.Path, i)
			if err := g.add(one); err != nil {
				return err
			}
		}
		return nil
	}
	return g.add(e)
}

// add puts one plain entry after its parents.
func (g *growth) add(e Entry) error {
	if e.Path != "." {
		if _, ok := g.made[path.Dir(e.Path)]; !ok {
			up := Entry{Kind: Dir, Path: path.Dir(e.Path), line: e.line, implied: true}
			if err := g.add(up); err != nil {
				return err
			}
		}
	}
	if at := g.made[e.Path]; at != 0 && e.Kind != Mount {
		return fmt.Errorf("%q is made by line %d", e.Path, at)
	} else if _, ok := g.made[e.Path]; ok && at == 0 && e.Kind != Mount && e.Path != "." {
		return fmt.Errorf("%q was made as a parent; write its line first", e.Path)
	}
	g.made[e.Path] = e.line
	if e.implied {
		g.made[e.Path] = 0
	}
	if e.Kind == Mount {
		g.mounts[e.Path] = e.FS
	}
	bare := g.filesystem(e.Path) == "ramfs"
	shown := e.Kind == Hardlink || e.Kind == Mount && e.FS == "bind"
	switch {
	case e.Label.Says == Given && bare:
		return fmt.Errorf("%q is on ramfs, which has no labels", e.Path)
	case e.Label.Says == Nothing && !bare && !shown:
		e.Label = g.def
	}
	g.out = append(g.out, e)
	return nil
}

// filesystem names what is mounted nearest above p; "" for the root's own.
func (g *growth) filesystem(p string) string {
	if len(g.mounts) == 0 {
		return ""
	}
	for ; p != "."; p = path.Dir(p) {
		if fs, ok := g.mounts[p]; ok {
			return fs
		}
	}
	return ""
}

// AwkwardNames lists names that careless code trips over: each byte but NUL
// and the slash alone and in the middle of a name, and some famous ones.
func AwkwardNames() []string {
	var names []string
	for b := 1; b < 256; b++ {
		c := string([]byte{byte(b)})
		if c == "/" {
			continue
		}
		if c != "." {
			names = append(names, c)
		}
		names = append(names, "a"+c+"z")
	}
	names = append(names,
		strings.Repeat("n", 255),
		strings.Repeat("\xff", 255),
		"-rf", "--", "-", "--help",
		"..x", "...", "x..", ". .", ". ", " .",
		"a b", " lead", "trail ", "two\nlines", "tab\tbed", "trail\n", "cr\r\n",
		"%s%n", "%d", "$(id)", "`id`", "${IFS}", "*.go", "[a-z]", "{a,b}", "~root", "a;b", "a&b", "a|b",
		`q"uote`, `q'uote`, `back\slash`, `\n`, `\x00`, `\040`,
		"con", "nul.txt", "\xc3\xa9", "e\xcc\x81", "\xe2\x80\xae.txt", "\xed\xa0\x80", "\xf0\x9f\x98\x80",
		"\x1b[31m", "label=-", "#hash", ".wh.gone", "lost+found")
	slices.Sort(names)
	return slices.Compact(names) // some are single bytes, and there already
}
