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
	"sync/atomic"
	"syscall"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/undo"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// record makes the file of --record, for the one path.
func (j *job) record(ctx context.Context, paths []string) (err error) {
	file := j.settings.record
	at := "--record " + words.Brief(file)
	if file == "-" {
		return usageError{errors.New("--record: - is no file, and restore reads no pipe")}
	}
	if len(paths) != 1 {
		return usageError{errors.New("--record is for one PATH: each needs a file of its own")}
	}
	above, err := within(ctx, func() (map[identity]bool, error) { return above(file) })
	if err == nil {
		if in, _ := firstOf(ctx, paths, above, os.Stat); in != "" {
			return usageError{fmt.Errorf("%s: it would lie in %s, and be labelled with it", at, words.Brief(in))}
		}
		j.recorder, err = within(ctx, func() (*undo.Writer, error) { return undo.Create(file, versionLine()) })
	}
	switch {
	case err != nil && isEnd(ctx, err):
		return hungAt("openat", file, err)
	case errors.Is(err, fs.ErrExist):
		return usageError{fmt.Errorf("%s: there is such a file: each run needs a new one", at)}
	}
	return err
}

// hungAt is the end of a context while a call on path had not returned.
func hungAt(call, path string, end error) error {
	return &relabel.Hung{Calls: []relabel.HungCall{{Call: call, Path: path}}, Cause: end}
}

// above has what the file lies in, and itself if it is there.
func above(file string) (map[identity]bool, error) {
	dirs, err := upwards(dirOf(file))
	if err != nil {
		return nil, err
	}
	all := map[identity]bool{}
	for _, id := range dirs {
		all[id] = true
	}
	if info, err := os.Lstat(file); err == nil {
		if id, ok := identify(info); ok {
			all[id] = true
		}
	}
	return all, nil
}

// firstOf returns the first of paths that is among them; "" if none is, or if not all
// answered. What is wrong with a path, or that it does not answer, the engine says.
func firstOf(ctx context.Context, paths []string, among map[identity]bool, stat func(string) (fs.FileInfo, error)) (found string, all bool) {
	var first atomic.Pointer[string]
	all, _ = looks(ctx, isPart(), func(at *atomic.Int64) bool {
		for i := range paths {
			if at.Add(1); ctx.Err() != nil {
				return false
			}
			if info, err := stat(paths[i]); err == nil {
				if id, ok := identify(info); ok && among[id] {
					first.Store(&paths[i])
					break
				}
			}
		}
		return true
	})
	if p := first.Load(); p != nil {
		return *p, all
	}
	return "", all
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
func (j *job) recorded(ctx context.Context) int {
	if j.recorder == nil {
		return exitDone
	}
	code := exitDone
	file := words.Shell(notFlag(j.settings.record))
	restore := words.Shell(cmp.Or(j.name, "fastlabel")) + " restore "
	late, cancel := lingering(ctx)
	defer cancel()
	type state struct{ begun, whole bool }
	is, err := within(late, func() (state, error) {
		begun := j.recorder.Begun()
		err := j.recorder.Close()
		return state{begun, j.recorder.Whole()}, err
	})
	switch {
	case err != nil && late.Err() != nil:
		j.failure("", &fs.PathError{Op: "write", Path: j.settings.record, Err: errHangs})
		code, _ = endOf(ctx)
	case err != nil:
		j.failure("", err)
		code = exitFailed
	}
	switch {
	case !is.begun && code == exitDone:
		j.note("", "nothing was recorded")
	case is.whole:
		j.note("", "to put the labels back: "+restore+file)
	default:
		j.note("", "the record is cut short; what it holds is put back by: "+restore+"--partial "+file)
	}
	return code
}

// notFlag is file as an operand.
func notFlag(file string) string {
	if file[0] == '-' {
		return "./" + file
	}
	return file
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
func (j *job) restore(ctx context.Context, operands []string) ([]string, error) {
	if len(operands) != 1 || operands[0] == "" || operands[0] == "-" {
		return nil, usageError{errors.New("restore takes one FILE, which is no pipe")}
	}
	file := operands[0]
	r, err := within(ctx, func() (*undo.Reader, error) { return openRecord(file, j.partial) })
	switch {
	case err != nil && isEnd(ctx, err):
		return nil, hungAt("read", file, err)
	case err != nil:
		return nil, err
	case r.Cut:
		j.note("", fmt.Sprintf("the record has no end; it holds %s entries", words.Thousands(r.Entries)))
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

// openRecord opens the record and checks all of it.
func openRecord(file string, partial bool) (*undo.Reader, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would be waited for
	if err != nil {
		return nil, err
	}
	refuse := func(err error) (*undo.Reader, error) {
		_ = f.Close() // it was only read
		return nil, &fs.PathError{Op: "restore", Path: file, Err: refusal{err}}
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && !onlyOurs(info) {
		return refuse(errors.New("others than this user and root may have written it"))
	}
	r, err := undo.Open(f)
	if err != nil {
		return refuse(err)
	}
	if r.Cut && !partial {
		return refuse(fmt.Errorf("the record has no end: its run was killed, or the file is not whole; it holds %s entries, which --partial puts back", words.Thousands(r.Entries)))
	}
	return r, nil
}

// refusal is an error that ends the command with exitRefused.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }
