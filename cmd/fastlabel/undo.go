// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/apart"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/undofile"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/wait"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// record makes the file of --record, for the one path.
func (j *job) record(ctx context.Context, paths []string) (err error) {
	file := j.settings.record
	at := "--record " + words.Brief(file)
	if file == "-" {
		return exit.UsageError{Err: errors.New("--record: - is no file, and restore reads no pipe")}
	}
	if len(paths) != 1 {
		return exit.UsageError{Err: errors.New("--record is for one PATH: each needs a file of its own")}
	}
	above, err := answer(ctx, "openat", file, func() (map[site.Identity]bool, error) { return site.Above(file) })
	if err == nil {
		if in, _ := firstOf(ctx, paths, above, os.Stat); in != "" {
			return exit.UsageError{Err: fmt.Errorf("%s: it would lie in %s, and be labelled with it", at, words.Brief(in))}
		}
		j.recorder, err = answer(ctx, "openat", file, func() (*undofile.Writer, error) { return undofile.Create(file, versionLine()) })
	}
	if errors.Is(err, fs.ErrExist) {
		return exit.UsageError{Err: fmt.Errorf("%s: there is such a file: each run needs a new one", at)}
	}
	return err
}

// firstOf returns the first of paths that is among them; "" if none is, or if not all
// answered. What is wrong with a path, or that it does not answer, the engine says.
func firstOf(ctx context.Context, paths []string, among map[site.Identity]bool, stat func(string) (fs.FileInfo, error)) (found string, all bool) {
	var first atomic.Pointer[string]
	all, _, _ = wait.Looks(ctx, patienceIf(apart.IsPart(), wait.Patience), func(at *atomic.Int64) bool {
		for i := range paths {
			if at.Add(1); ctx.Err() != nil {
				return false
			}
			if info, err := stat(paths[i]); err == nil {
				if id, ok := site.Identify(info); ok && among[id] {
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

// recorded ends the record, and says what it is good for.
func (j *job) recorded(ctx context.Context) int {
	if j.recorder == nil {
		return exit.Done
	}
	code := exit.Done
	file := words.Shell(notFlag(j.settings.record))
	restore := words.Shell(cmp.Or(j.name, "fastlabel")) + " restore "
	late, cancel := wait.Linger(ctx, wait.Grace)
	defer cancel()
	is, err := wait.Within(late, j.recorder.Close)
	switch {
	case err != nil && late.Err() != nil:
		j.Failure("", &fs.PathError{Op: "write", Path: j.settings.record, Err: report.ErrHangs})
		code, _ = exit.Of(ctx)
	case err != nil:
		j.Failure("", err)
		code = exit.Failed
	}
	switch {
	case is == undofile.Empty && code == exit.Done:
		j.Note("", file+": nothing was recorded")
	case is == undofile.Whole:
		j.Note("", file+": recorded; to put the labels back: "+restore+file)
	default:
		j.Note("", file+": the record is cut short; to put back what it holds: "+restore+"--partial "+file)
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

// nextRecord names the record of the run that resumes: each run has its own file.
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
		return nil, exit.UsageError{Err: errors.New("restore takes one FILE, which is no pipe")}
	}
	file := operands[0]
	r, err := answer(ctx, "read", file, func() (*undofile.Reader, error) { return openRecord(file, j.partial) })
	if err != nil {
		return nil, err
	}
	if r.Cut {
		j.Note("", fmt.Sprintf("%s: the record has no end: it holds %s entries", words.Brief(file), words.Thousands(r.Entries)))
	}
	j.label = r.Head.Label
	j.tree = func(ctx context.Context, _, _ string, o *relabel.Options, check bool) (relabel.Report, error) {
		if check {
			return relabel.CheckRestore(ctx, j.root, r.Head, r.Pages(), o)
		}
		return relabel.Restore(ctx, j.root, r.Head, r.Pages(), o)
	}
	if j.root != "" {
		return []string{j.root}, nil
	}
	return []string{r.Head.Root}, nil
}

// openRecord opens the record and checks all of it.
func openRecord(file string, partial bool) (*undofile.Reader, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would be waited for
	if err != nil {
		return nil, err
	}
	refuse := func(err error) (*undofile.Reader, error) {
		_ = f.Close() // it was only read
		return nil, &fs.PathError{Op: "restore", Path: file, Err: exit.Refusal{Err: err}}
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && !site.OnlyOurs(info) {
		return refuse(errors.New("others than this user and root may have written it"))
	}
	r, err := undofile.Open(f)
	if err != nil {
		return refuse(err)
	}
	if r.Cut && !partial {
		return refuse(fmt.Errorf("the record has no end: its run was killed, or the file is not whole; to put back the %s entries that it holds: --partial", words.Thousands(r.Entries)))
	}
	return r, nil
}
