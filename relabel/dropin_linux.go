// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/policy"
)

// chcon is Chcon after its arguments were looked at. want is canonical. A walk that ctx can end
// is one of joined.
func chcon(ctx context.Context, path, want string, recurse bool) error {
	var err error
	if recurse && ctx.Done() != nil {
		_, err = joined.Tree(ctx, path, want, SkipNone)
	} else {
		err = chconHere(ctx, path, want, recurse, twoMinutes)
	}
	if err == nil {
		return nil
	}
	return worded(err, "lsetxattr(label="+want+")")
}

func chconHere(ctx context.Context, path, want string, recurse bool, patience time.Duration) error {
	r := newRelabelling(Options{LockTimeout: patience}, inner{here: true, joins: recurse}, path, want)
	what := r.one
	if recurse {
		what = r.tree
	}
	_, err := r.execute(ctx, what)
	return err
}

// one labels the root alone, whatever its kind; that it is gone is no error.
func (r *relabelling) one(ctx context.Context) error {
	defer r.close()
	err := r.open(ctx, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.volumeLock.Release()
	return r.file()
}

// worded is an error of Tree in go-selinux's words. op is that of a label that could not be written.
func worded(err error, op string) error {
	var some *IncompleteError
	var at *fs.PathError
	switch {
	case errors.As(err, new(*PendingError)) || errors.As(err, new(*HungError)):
		return err
	case errors.As(err, &some):
		return wordedAll(some, op)
	case !errors.As(err, &at):
		return err
	case errors.Is(err, ErrRefused):
		why := strings.TrimPrefix(at.Err.Error(), ErrRefused.Error())
		return &also{errors.New("SELinux relabeling of " + at.Path + " is not allowed" + why), []error{at}}
	}
	return wordedOne(at, op)
}

// wordedAll words several errors. ENOTSUP is text alone beside any other.
func wordedAll(some *IncompleteError, op string) error {
	others := slices.ContainsFunc(some.First, func(err error) bool { return !errors.Is(err, syscall.ENOTSUP) })
	all := &IncompleteError{Failed: some.Failed}
	for _, err := range some.First {
		var at *fs.PathError
		if !errors.As(err, &at) {
			at = &fs.PathError{Op: "relabel", Err: err} // the engine has no such
		}
		at = wordedOne(at, op)
		if others && errors.Is(at, syscall.ENOTSUP) {
			at = &fs.PathError{Op: at.Op, Path: at.Path, Err: errors.New(syscall.ENOTSUP.Error())}
		}
		all.First = append(all.First, at)
	}
	return all
}

func wordedOne(at *fs.PathError, op string) *fs.PathError {
	why := at.Err
	var reason *policy.Denied
	_, bare := why.(syscall.Errno) //nolint:errorlint // what is wrapped keeps its words
	switch {
	case errors.Is(why, syscall.ENOTSUP):
		why = syscall.ENOTSUP // a mount may say that it has no labels; the call would have said it
	case bare && strings.Contains(at.Op, "setxattr"):
	case errors.As(why, &reason) && reason.SELinux:
		why = reason
	case reason != nil:
		why = reason.Errno // go-selinux's callers may compare it
	default:
		return at
	}
	return &fs.PathError{Op: op, Path: at.Path, Err: why}
}
