// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// maxRepeat bounds a repeated line: a slip of the pen should not fill a disk.
const maxRepeat = 20_000_000

var verb = regexp.MustCompile(`%(0[1-9][0-9]?)?d`)

// word is one field of a line. A value in quotes is never a keyword.
type word struct {
	key    string // of key=value
	text   string
	quoted bool
}

// Parse reads a tree. name is used in errors, which begin with name:line.
func Parse(name, text string) (*Tree, error) {
	tr := &Tree{Name: name}
	for i, line := range strings.Split(text, "\n") {
		words, err := split(line)
		if err == nil && len(words) == 0 {
			continue
		}
		var e Entry
		if err == nil {
			e, err = parseEntry(words)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
		e.line = i + 1
		tr.Entries = append(tr.Entries, e)
	}
	if _, err := tr.Expand(); err != nil {
		return nil, err
	}
	return tr, nil
}

// split cuts a line into words and drops the comment.
func split(line string) ([]word, error) {
	var words []word
	for {
		line = strings.TrimLeft(line, " \t\r")
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
			if w.text, err = strconv.Unquote(q); err != nil {
				return nil, fmt.Errorf("quotes: %w", err)
			}
			w.quoted, line = true, line[len(q):]
			if line != "" && !strings.ContainsRune(" \t\r", rune(line[0])) {
				return nil, fmt.Errorf("no blank after %s", q)
			}
		} else {
			end := strings.IndexAny(line, " \t\r")
			if end < 0 {
				end = len(line)
			}
			w.text, line = line[:end], line[end:]
		}
		words = append(words, w)
	}
}

// parseEntry takes what the kind needs, then the options in any order.
func parseEntry(words []word) (Entry, error) {
	e := Entry{Kind: Kind(words[0].text)}
	words = words[1:]
	take := func(what string) (string, error) {
		if len(words) == 0 || words[0].key != "" {
			return "", fmt.Errorf("%s needs %s", e.Kind, what)
		}
		s := words[0].text
		words = words[1:]
		return s, nil
	}
	var err error
	if e.Kind != Default {
		if e.Path, err = take("a path"); err != nil {
			return e, err
		}
		if err := checkPath(e.Path, e.Kind == Dir); err != nil {
			return e, err
		}
	}
	if err := parseNeeds(&e, take); err != nil {
		return e, err
	}
	for _, w := range words {
		if err := parseOption(&e, w); err != nil {
			return e, err
		}
	}
	return e, checkEntry(e)
}

// parseNeeds reads what the kind needs after the path.
func parseNeeds(e *Entry, take func(string) (string, error)) (err error) {
	var s string
	switch e.Kind {
	case Dir, File, Fifo, Socket, Default:
	case Link:
		if e.Target, err = take("a target"); err == nil && (e.Target == "" || strings.Contains(e.Target, "\x00")) {
			err = fmt.Errorf("%q cannot be a target", e.Target)
		}
	case Hardlink:
		if e.Target, err = take("a path to link to"); err == nil {
			err = checkPath(e.Target, false)
		}
	case Char, Block:
		if s, err = take("MAJOR:MINOR"); err != nil {
			return err
		}
		if n, _ := fmt.Sscanf(s, "%d:%d", &e.Major, &e.Minor); n != 2 || s != fmt.Sprintf("%d:%d", e.Major, e.Minor) {
			err = fmt.Errorf("%q is not MAJOR:MINOR", s)
		}
	case Mount:
		if e.FS, err = take("a filesystem"); err != nil {
			return err
		}
		switch e.FS {
		case "tmpfs", "ramfs":
		case "bind":
			if e.Target, err = take("a path to show"); err == nil {
				err = checkPath(e.Target, true)
			}
		default:
			err = fmt.Errorf("cannot mount %q: tmpfs, ramfs or bind", e.FS)
		}
	case Deep:
		if s, err = take("xN"); err != nil {
			return err
		}
		if e.Repeat, err = parseRepeat(s); err != nil {
			return err
		}
		if s, err = take("a length"); err != nil {
			return err
		}
		e.Length, err = strconv.Atoi(s)
		if low := len(strconv.Itoa(e.Repeat)); err != nil || e.Length < low || e.Length > 255 {
			err = fmt.Errorf("length %q: from %d to 255", s, low)
		}
	case Names:
		if s, err = take("every-byte"); err == nil && s != "every-byte" {
			err = fmt.Errorf("names: %q is not every-byte", s)
		}
	default:
		err = fmt.Errorf("unknown kind %q", string(e.Kind))
	}
	return err
}

func parseOption(e *Entry, w word) (err error) {
	switch {
	case w.key == "label" && e.Label.Says != Nothing:
		return errors.New("two labels")
	case w.key == "label" && w.text == "-" && !w.quoted:
		e.Label.Says = Absent
	case w.key == "label":
		e.Label = Context{Given, w.text}
	case w.key == "mode":
		m, err := strconv.ParseUint(w.text, 8, 12)
		if err != nil {
			return fmt.Errorf("mode %q is not octal up to 7777", w.text)
		}
		e.Mode, e.HasMode = uint32(m), true
	case w.text == "ro" && e.Kind == Mount && !w.quoted:
		e.ReadOnly = true
	case strings.HasPrefix(w.text, "x") && e.Repeat == 0 && !w.quoted:
		e.Repeat, err = parseRepeat(w.text)
	default:
		return fmt.Errorf("unknown option %q", w.text)
	}
	return err
}

func parseRepeat(s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(s, "x"))
	if s == "" || s[0] != 'x' || err != nil || n < 1 || n > maxRepeat {
		return 0, fmt.Errorf("%q is not xN, N from 1 to %d", s, maxRepeat)
	}
	return n, nil
}

// checkEntry refuses what cannot be built.
func checkEntry(e Entry) error {
	bind := e.Kind == Mount && e.FS == "bind"
	switch {
	case e.Kind == Default && (e.Label.Says == Nothing || e.HasMode || e.Repeat > 0):
		return errors.New("default takes a label and nothing else")
	case e.Label.Says != Nothing && (e.Kind == Hardlink || bind):
		return errors.New("its label is that of what it shows")
	case e.Label.Says == Given && e.Kind == Mount && e.FS == "ramfs":
		return errors.New("ramfs has no labels")
	case e.HasMode && (e.Kind == Link || e.Kind == Hardlink || bind):
		return fmt.Errorf("%s takes no mode", e.Kind)
	case e.Repeat > 0 && e.Kind != Dir && e.Kind != File && e.Kind != Fifo && e.Kind != Deep:
		return fmt.Errorf("%s cannot be repeated", e.Kind)
	case e.Repeat > 0 && e.Kind != Deep && (len(verb.FindAllString(e.Path, -1)) != 1 || strings.Count(e.Path, "%") != 1):
		return fmt.Errorf("a repeated path needs one %%d: %q", e.Path)
	}
	return nil
}

func checkPath(p string, root bool) error {
	if p == "." && root {
		return nil
	}
	if p == "" || p == "." || path.Clean(p) != p || p[0] == '/' || p == ".." ||
		strings.HasPrefix(p, "../") || strings.Contains(p, "\x00") {
		return fmt.Errorf("%q is not a clean path below the root", p)
	}
	for _, name := range strings.Split(p, "/") {
		if len(name) > 255 {
			return fmt.Errorf("a name of %d bytes: at most 255", len(name))
		}
	}
	return nil
}
