// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/undo"
	"github.com/fastlabel/fastlabel/relabel"
)

// record makes the file of --record, for the one path.
func (j *job) record(paths []string) error {
	at := "--record " + brief(j.settings.record)
	if len(paths) != 1 {
		return usageError{errors.New("--record is for one PATH: each needs a file of its own")}
	}
	in, err := liesIn(j.settings.record, paths, os.Stat)
	if err == nil && in != "" {
		return usageError{fmt.Errorf("%s: it would lie in %s, and be labelled with it", at, brief(in))}
	}
	if err == nil {
		j.recorder, err = undo.Create(j.settings.record, versionLine())
	}
	if errors.Is(err, fs.ErrExist) {
		return usageError{fmt.Errorf("%s: there is such a file: each run needs a new one", at)}
	}
	return err
}

// liesIn returns which of paths the file is, or will lie in or beneath; "" if none.
// stat follows links or does not. What is wrong with a path the engine says.
func liesIn(file string, paths []string, stat func(string) (fs.FileInfo, error)) (string, error) {
	all, err := upwards(dirOf(file))
	if err != nil {
		return "", err
	}
	above := map[identity]bool{}
	for _, id := range all {
		above[id] = true
	}
	if info, err := os.Lstat(file); err == nil {
		if id, ok := identify(info); ok {
			above[id] = true
		}
	}
	for _, p := range paths {
		if info, err := stat(p); err == nil {
			if id, ok := identify(info); ok && above[id] {
				return p, nil
			}
		}
	}
	return "", nil
}

// dirOf is what the kernel resolves for file but its last name: link/../x is not x.
func dirOf(file string) string {
	dir, _ := filepath.Split(file)
	return cmp.Or(dir, ".")
}

// sameName tells whether two names are one, whatever leads to their directory.
func sameName(a, b string) bool {
	if filepath.Base(a) != filepath.Base(b) {
		return false
	}
	one, err := upwards(dirOf(a))
	other, err2 := upwards(dirOf(b))
	return err == nil && err2 == nil && one[0] == other[0]
}

// recorded ends the record, and says what it is good for.
func (j *job) recorded() int {
	if j.recorder == nil {
		return exitDone
	}
	begun := j.recorder.Begun()
	code := exitDone
	if err := j.recorder.Close(); err != nil {
		j.failure("", err)
		code = exitFailed
	}
	switch file := forShell(j.settings.record); {
	case !begun:
		j.note("", "nothing was recorded")
	case j.recorder.Whole():
		j.note("", "to put the labels back: fastlabel restore "+file)
	default:
		j.note("", "the record is cut short; what it holds is put back by: fastlabel restore --partial "+file)
	}
	return code
}

// nextRecord is the file for a run that goes on: each has one of its own.
func nextRecord(file string) string {
	if at := strings.LastIndexByte(file, '.'); at >= 0 {
		if n, err := strconv.Atoi(file[at+1:]); err == nil && n > 1 && n < 1000 {
			return file[:at+1] + strconv.Itoa(n+1)
		}
	}
	return file + ".2"
}

// restore makes the job one that puts labels back, and returns its path. The
// whole record is checked before.
func (j *job) restore(operands []string) ([]string, error) {
	if len(operands) != 1 || operands[0] == "" || operands[0] == "-" {
		return nil, usageError{errors.New("restore takes one FILE, which is no pipe")}
	}
	file := operands[0]
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would be waited for
	if err != nil {
		return nil, err
	}
	refuse := func(err error) ([]string, error) {
		_ = f.Close() // it was only read
		return nil, &fs.PathError{Op: "restore", Path: file, Err: refusal{err}}
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && !onlyOurs(info) {
		return refuse(errors.New("others than this user and root may have written it"))
	}
	r, err := undo.Open(f)
	switch {
	case err != nil:
		return refuse(err)
	case r.Cut && !j.partial:
		return refuse(fmt.Errorf("the record has no end: its run was killed, or the file is not whole; it holds %s entries, which --partial puts back", thousands(r.Entries)))
	case r.Cut:
		j.note("", fmt.Sprintf("the record has no end; it holds %s entries", thousands(r.Entries)))
	}
	r.Head.Partial = r.Cut
	j.label = r.Head.Label
	j.tree = func(ctx context.Context, _, _ string, o relabel.Options) (relabel.Report, error) {
		return relabel.Restore(ctx, j.root, r.Head, r.Pages(), o)
	}
	if j.root != "" {
		return []string{j.root}, nil
	}
	return []string{r.Head.Root}, nil
}

// refusal is an error that ends the command with exitRefused.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }
