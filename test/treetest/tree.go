// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Kind is the first word of a line.
type Kind string

// The kinds of entries.
const (
	Dir      Kind = "dir"
	File     Kind = "file"
	Link     Kind = "link"
	Hardlink Kind = "hardlink"
	Fifo     Kind = "fifo"
	Socket   Kind = "socket"
	Char     Kind = "char"
	Block    Kind = "block"
	Mount    Kind = "mount"
)

// needs is how many words a line of each kind needs behind the first.
var needs = map[Kind]int{
	Dir: 1, File: 1, Link: 2, Hardlink: 2, Fifo: 1, Socket: 1, Char: 2, Block: 2, Mount: 2,
	"deep": 3, "names": 2, "default": 0, // these stand for other lines
}

// Says tells what a line says about the label.
type Says int

const (
	// Nothing: the default in force at the line holds.
	Nothing Says = iota
	// Absent: the entry has no label.
	Absent
	// Given: the entry has Context.
	Given
)

// Context is the label that an entry has at first.
type Context struct {
	Says Says
	Raw  string // the attribute's bytes if Given
}

// Entry is one entry of a tree.
type Entry struct {
	Kind         Kind
	Path         string // below the root
	Target       string // of a link, hard link or bind mount
	FS           string // of a mount: tmpfs, ramfs or bind
	ReadOnly     bool   // of a mount
	Major, Minor uint32 // of a device
	Mode         uint32 // permission bits, if HasMode
	HasMode      bool
	Label        Context

	line    int  // where it was written
	implied bool // a parent that no line makes
}

// Tree is a tree: its entries in the order of making, each after its parents.
type Tree struct {
	Name    string // of the file, for messages
	Entries []Entry
}

// word is one field of a line.
type word struct{ key, text string } // of key=text, or key is ""

// parser is the state of Parse.
type parser struct {
	tree   *Tree
	line   int
	made   map[string]bool
	mounts map[string]string // their filesystems
	def    Context
}

// Parse reads a tree. An error begins with name and the line.
func Parse(name, text string) (*Tree, error) {
	p := &parser{tree: &Tree{Name: name}, made: map[string]bool{".": true}, mounts: map[string]string{}}
	for line := range strings.Lines(text) {
		p.line++
		words, err := split(line)
		if err == nil && len(words) > 0 {
			err = p.entry(words)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, p.line, err)
		}
	}
	return p.tree, nil
}

// split cuts a line into words and drops the comment.
func split(line string) ([]word, error) {
	var words []word
	for {
		line = strings.TrimLeft(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			return words, nil
		}
		var w word
		for _, key := range []string{"label", "mode"} {
			if rest, ok := strings.CutPrefix(line, key+"="); ok {
				w.key, line = key, rest
			}
		}
		if strings.HasPrefix(line, `"`) {
			q, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, errors.New("unfinished or malformed quotes")
			}
			w.text, _ = strconv.Unquote(q) // it is quoted well
			line = line[len(q):]
		} else {
			end := strings.IndexAny(line+"\n", " \t\r\n")
			w.text, line = line[:end], line[end:]
			if w == (word{"label", "-"}) {
				w.key = "unlabelled"
			}
		}
		words = append(words, w)
	}
}

// entry adds what a line stands for.
func (p *parser) entry(words []word) (err error) {
	e := Entry{Kind: Kind(words[0].text), line: p.line}
	words = words[1:]
	n, known := needs[e.Kind]
	if e.Kind == Mount && len(words) > 1 && words[1].text == "bind" {
		n++
	}
	if !known || len(words) < n || slices.ContainsFunc(words[:n], func(w word) bool { return w.key != "" }) {
		return fmt.Errorf("%q is no kind, or lacks a word", e.Kind)
	}
	args, repeat := words[:n], 0
	for _, w := range words[n:] {
		switch {
		case w.key == "unlabelled":
			e.Label.Says = Absent
		case w.key == "label":
			e.Label = Context{Given, w.text}
		case w.key == "mode":
			var mode uint64
			mode, err = strconv.ParseUint(w.text, 8, 12)
			e.Mode, e.HasMode = uint32(mode), true
		case w.text == "ro" && e.Kind == Mount:
			e.ReadOnly = true
		default:
			repeat, err = repeated(w.text)
		}
		if err != nil {
			return err
		}
	}
	if n > 0 {
		if e.Path = args[0].text; e.Path != "." && path.Clean("/"+e.Path) != "/"+e.Path {
			return fmt.Errorf("%q is not a clean path below the root", e.Path)
		}
	}
	switch e.Kind {
	case "default":
		p.def = e.Label
		return nil
	case "deep":
		return p.deep(e, args[1].text, args[2].text)
	case "names":
		e.Kind = Dir
		if err := p.add(e); err != nil {
			return err
		}
		for _, name := range awkwardNames() {
			if err := p.add(Entry{Kind: File, Path: e.Path + "/" + name, Label: e.Label, line: e.line}); err != nil {
				return err
			}
		}
		return nil
	case Link, Hardlink:
		e.Target = args[1].text
	case Char, Block:
		if n, _ := fmt.Sscanf(args[1].text, "%d:%d", &e.Major, &e.Minor); n != 2 {
			return fmt.Errorf("%q is not MAJOR:MINOR", args[1].text)
		}
	case Mount:
		if e.FS = args[1].text; e.FS == "bind" {
			e.Target = args[2].text
		}
	}
	if repeat == 0 {
		return p.add(e)
	}
	format := e.Path
	if strings.Count(format, "%") != 1 {
		return fmt.Errorf("a repeated path needs one %%d: %q", format)
	}
	for i := range repeat {
		e.Path = fmt.Sprintf(format, i)
		if err := p.add(e); err != nil {
			return err
		}
	}
	return nil
}

// deep adds a chain of directories, and a file lowest.
func (p *parser) deep(e Entry, repeat, length string) error {
	n, err1 := repeated(repeat)
	l, err2 := strconv.Atoi(length)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	e.Kind = Dir
	for i := range n + 1 {
		if err := p.add(e); err != nil {
			return err
		}
		if e.Path += fmt.Sprintf("/%0*d", l, i+1); i == n {
			e.Kind, e.Path = File, path.Dir(e.Path)+"/leaf"
		}
		e.Mode, e.HasMode = 0, false
	}
	return p.add(e)
}

func repeated(s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(s, "x"))
	if err != nil || n < 1 || s[0] != 'x' {
		return 0, fmt.Errorf("%q is no option, and not xN", s)
	}
	return n, nil
}

// add puts one entry after its parents.
func (p *parser) add(e Entry) error {
	if up := path.Dir(e.Path); !p.made[up] {
		if err := p.add(Entry{Kind: Dir, Path: up, line: e.line, implied: true}); err != nil {
			return err
		}
	}
	if p.made[e.Path] && e.Kind != Mount && e.Path != "." {
		return fmt.Errorf("%q is made already, perhaps as a parent", e.Path)
	}
	p.made[e.Path] = true
	if e.Kind == Mount {
		p.mounts[e.Path] = e.FS
	}
	shown := e.Kind == Hardlink || e.Kind == Mount && e.FS == "bind"
	if e.Label.Says == Nothing && !shown && p.filesystem(e.Path) != "ramfs" {
		e.Label = p.def
	}
	p.tree.Entries = append(p.tree.Entries, e)
	return nil
}

// filesystem names what is mounted nearest above a path; "" for the root's own.
func (p *parser) filesystem(at string) string {
	for ; len(p.mounts) > 0 && at != "."; at = path.Dir(at) {
		if fs, ok := p.mounts[at]; ok {
			return fs
		}
	}
	return ""
}

// awkwardNames lists names that careless code trips over: each byte but NUL
// and the slash alone and in the middle of a name, and some famous ones.
func awkwardNames() []string {
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
