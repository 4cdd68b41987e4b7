// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"fmt"
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
	Deep     Kind = "deep"
	Names    Kind = "names"
	Default  Kind = "default"
)

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

// Entry is one line of a tree.
type Entry struct {
	Kind         Kind
	Path         string // below the root; a format if Repeat > 0
	Target       string // of a link, hard link or bind mount
	FS           string // of a mount: tmpfs, ramfs or bind
	ReadOnly     bool   // of a mount
	Major, Minor uint32 // of a device
	Mode         uint32 // permission bits, if HasMode
	HasMode      bool
	Label        Context
	Repeat       int // of a repeated line or a deep chain; 0 for a plain line
	Length       int // of the names in a deep chain, in bytes

	line    int  // where it was written
	implied bool // a parent that no line makes
}

// Tree is a tree as text.
type Tree struct {
	Name    string // of the file, for messages
	Entries []Entry
}

// String gives the tree as text that Parse reads back to the same entries.
func (tr *Tree) String() string {
	var b strings.Builder
	for _, e := range tr.Entries {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// String gives the entry as one line.
func (e Entry) String() string {
	f := []string{string(e.Kind)}
	if e.Kind != Default {
		f = append(f, quote(e.Path))
	}
	switch e.Kind {
	case Link, Hardlink:
		f = append(f, quote(e.Target))
	case Char, Block:
		f = append(f, fmt.Sprintf("%d:%d", e.Major, e.Minor))
	case Mount:
		f = append(f, e.FS)
		if e.FS == "bind" {
			f = append(f, quote(e.Target))
		}
		if e.ReadOnly {
			f = append(f, "ro")
		}
	case Names:
		f = append(f, "every-byte")
	}
	if e.Repeat > 0 {
		f = append(f, fmt.Sprintf("x%d", e.Repeat))
	}
	if e.Kind == Deep {
		f = append(f, strconv.Itoa(e.Length))
	}
	if e.HasMode {
		f = append(f, fmt.Sprintf("mode=%04o", e.Mode))
	}
	switch {
	case e.Label.Says == Absent:
		f = append(f, "label=-")
	case e.Label.Says == Given && e.Label.Raw == "-":
		f = append(f, `label="-"`)
	case e.Label.Says == Given:
		f = append(f, "label="+quote(e.Label.Raw))
	}
	return strings.Join(f, " ")
}

// quote leaves plain words as they are and Go-quotes the rest.
func quote(s string) string {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '#' || c == '\\' {
			return strconv.Quote(s)
		}
	}
	if s == "" || strings.HasPrefix(s, "label=") || strings.HasPrefix(s, "mode=") {
		return strconv.Quote(s)
	}
	return s
}
