// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is the project's source, broken in one way.
type Mutant struct {
	Name   string
	By     string // the test that fails, TestName[/subtest...]; with " in DIR" if that is not the first edit's
	Inside string // the test of test/system/selinuxvm/inside that fails, in the machine
	Breaks string // what is no longer true
	Edits  []Edit
}

// Edit replaces Old, which occurs once in File, by New.
type Edit struct{ File, Old, New string }

// mutant makes a Mutant that breaks what the sentence says. Tests is By; "By; Inside", or "; Inside".
// List has a file, the old and the new for each edit.
func mutant(name, tests, breaks string, list ...string) Mutant {
	m := Mutant{Name: name, Breaks: breaks}
	m.By, m.Inside, _ = strings.Cut(tests, "; ")
	for e := range slices.Chunk(list, 3) {
		m.Edits = append(m.Edits, Edit{e[0], e[1], e[2]})
	}
	return m
}

// All are the mutants.
func All() []Mutant {
	return slices.Concat(commits(), confinement(), counts(), pool(), callers(), rules(), machine())
}

// Find finds a mutant by its name.
func Find(name string) (Mutant, error) {
	all := All()
	if i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name }); i >= 0 {
		return all[i], nil
	}
	return Mutant{}, fmt.Errorf("there is no mutant %s", name)
}

// Test is the test named by By, and the directory of its package.
func (m Mutant) Test() (name, dir string) {
	if name, dir, ok := strings.Cut(m.By, " in "); ok {
		return name, dir
	}
	return m.By, path.Dir(m.Edits[0].File)
}

// Apply returns the broken files of the tree at root, by their paths in it.
func (m Mutant) Apply(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range m.Edits {
		text, read := files[e.File]
		if !read {
			b, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			text = string(b)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fmt.Errorf("mutant %s: this occurs %d times in %s, not once:\n%s", m.Name, n, e.File, e.Old)
		}
		files[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return files, nil
}

// Overlay writes the broken files of the tree at root to dir, and returns the
// file there that go's -overlay takes.
func (m Mutant) Overlay(root, dir string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	files, err := m.Apply(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range files {
		broken := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(broken, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, name)] = broken
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}
