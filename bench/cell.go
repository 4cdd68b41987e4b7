// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// cell is what contestants are compared on.
type cell struct {
	FS      string `json:"fs"`
	Size    string `json:"size,omitempty"` // of the filesystem, as truncate -s takes it
	Corpus  string `json:"corpus"`
	N       int    `json:"n"` // about how many entries
	State   string `json:"state"`
	Cold    bool   `json:"cold,omitempty"`
	Threads int    `json:"threads"`
	Limit   int    `json:"limit,omitempty"` // requests a second of a slowdisk; 0: a file on a disk
	// Beside is what goes on beside a call, as cell.beside has it; Threads are then callers.
	Beside string `json:"beside,omitempty"`
}

func (c cell) String() string {
	s := fmt.Sprintf("%s %s %d %s", c.FS, c.Corpus, c.N, c.State)
	if c.Cold {
		s += " cold"
	}
	if c.Limit > 0 {
		s += fmt.Sprintf(" %d/s", c.Limit)
	}
	if c.Beside != "" {
		s += " beside " + c.Beside
	}
	return fmt.Sprintf("%s -T %d", s, c.Threads)
}

// The two labels take turns, so that a run which finds every label wrong
// leaves every label wrong for the next.
var labels = [2]string{
	"system_u:object_r:container_file_t:s0:c1,c2",
	"system_u:object_r:container_file_t:s0:c3,c4",
}

const attribute = "security.selinux"

// field is a corpus on a volume, and the label that all of it has.
type field struct {
	binaries *binaries
	volume   *volume
	root     string
	paths    []string // what contestants are given: the root, or the volumes in it
	entries  int      // with the root
	has      int      // which of labels
	byRules  bool     // a system, labelled
}

// newField makes the corpus of the cell on a volume of its own.
func newField(b *binaries, dir string, c cell) (*field, error) {
	if c.FS == "slowfs" {
		return newSlowField(b, dir, c)
	}
	var v *volume
	var err error
	if c.Limit > 0 {
		v, err = newSlowDisk(b, dir, c)
	} else {
		v, err = newVolume(dir, c.FS, c.Size, c.N)
	}
	if v == nil {
		return nil, err
	}
	f := &field{binaries: b, volume: v, root: filepath.Join(v.mount, "pv")}
	f.paths = []string{f.root}
	if err != nil {
		return f, err
	}
	if err := os.Mkdir(f.root, 0o755); err != nil {
		return f, err
	}
	policy := ""
	if c.Corpus == "system" {
		if policy, err = b.newSystem(f.root); err != nil {
			return f, err
		}
	}
	n, err := plant(f.root, c.Corpus, c.N, policy)
	if err != nil {
		return f, err
	}
	f.entries = n + 1
	if c.Corpus == "volumes" {
		if f.paths, err = filepath.Glob(f.root + "/*"); err != nil {
			return f, err
		}
	}
	return f, f.floor("-m", "write", "-s", f.root, labels[0])
}

// prepare brings about the state and returns the label to be given.
func (f *field) prepare(c cell) (string, error) {
	now, other := labels[f.has], labels[1-f.has]
	var err error
	target := now
	switch {
	case c.FS == "slowfs":
		target, err = f.prepareSlow(c)
	case c.Corpus == "system":
		target, err = f.prepareSystem(c)
	case c.State == "right":
	case c.State == "wrong":
		target = other
	case c.State == "stray":
		err = f.floor("-m", "stray", f.root, other)
	default:
		err = fmt.Errorf("no such state: %s", c.State)
	}
	if err == nil && !strings.HasPrefix(c.Beside, "writer") { // who writes on leaves nothing at rest
		err = f.volume.rest()
	}
	if err == nil && c.Cold {
		err = f.volume.chill()
	}
	return target, err
}

// done notes that everything has the label.
func (f *field) done(label string) {
	for i := range labels {
		if labels[i] == label {
			f.has = i
		}
	}
}

// check says what does not have the label, or that of its rule.
func (f *field) check(c cell, who contestant, label string) error {
	switch {
	case c.FS == "slowfs":
		return f.checkSlow(label)
	case c.Corpus == "system" && !strings.HasPrefix(who.name, "floor-"):
		return f.checkSystem(who)
	case c.Corpus == "system" && c.State == "right": // the floor has read what others wrote
		return nil
	}
	out, err := exec.Command(f.binaries.floor, "-m", "count", f.root, label).Output()
	if err != nil {
		return fmt.Errorf("floor -m count: %w", err)
	}
	if want := fmt.Sprintf("%d seen, 0 written, 0 wrong\n", f.entries-1); string(out) != want {
		return fmt.Errorf("not all labelled: %s", out)
	}
	for _, path := range f.paths {
		value := make([]byte, 256)
		n, err := unix.Lgetxattr(path, attribute, value)
		if err != nil {
			return err
		}
		if got := strings.TrimRight(string(value[:n]), "\x00"); got != label {
			return fmt.Errorf("the root has %s", got)
		}
	}
	return nil
}

func (f *field) floor(args ...string) error {
	return run(append([]string{f.binaries.floor}, args...)...)
}
