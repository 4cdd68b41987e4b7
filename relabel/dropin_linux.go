// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/policy"
)

// chcon is Chcon after its arguments were looked at. want is canonical. It waits for
// the lock no longer than patience, or as long as ctx lets it if that is 0.
func chcon(ctx context.Context, path, want string, recurse bool, patience time.Duration) error {
	f := &failures{op: writing(want)}
	o := &Options{Trace: LogTo(slog.Default(), path), inner: inner{patience: patience}}
	o.Trace.Failure = f.add
	if !recurse {
		return f.sum(chconOne(ctx, path, want, o))
	}
	_, err := Tree(ctx, path, want, o)
	return f.sum(err)
}

// chconOne labels path alone, whatever its kind; that it is gone is no error.
func chconOne(ctx context.Context, path, want string, o *Options) error {
	r := newRun(*o, path, want)
	r.want, r.files = want, budget.RunFiles
	_, err := r.lead(ctx, func(ctx context.Context) error {
		there := false
		err := r.opened(ctx, path, probe, nil, func(ctx context.Context, root *mount) error {
			there = true
			return r.locked(ctx, root, func(_ context.Context, root *mount) error { return r.single(root) })
		})
		if !there && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	goOn(err)
	return err
}

// failures gathers what failed, told by one goroutine at a time, for the error
// of a drop-in.
type failures struct {
	op    string
	n     int64
	kept  []*fs.PathError // the first, and the first of each further errno
	known []syscall.Errno // in kept
	other bool            // something failed that is not ENOTSUP
}

func (f *failures) add(err error) {
	f.n++
	var at *fs.PathError
	if !errors.As(err, &at) {
		at = &fs.PathError{Op: "relabel", Err: err} // the engine tells no such
	}
	var e syscall.Errno
	is := errors.As(err, &e)
	f.other = f.other || e != syscall.ENOTSUP
	if fresh := is && !slices.Contains(f.known, e); fresh || len(f.kept) < keepErrors {
		if fresh {
			f.known = append(f.known, e)
		}
		f.kept = append(f.kept, f.word(at))
	}
}

// word words an error as go-selinux does.
func (f *failures) word(at *fs.PathError) *fs.PathError {
	var reason *policy.Denied
	e, is := at.Err.(syscall.Errno) //nolint:errorlint // what is wrapped keeps its words
	switch {
	case is && (e == syscall.ENOTSUP || strings.Contains(at.Op, "setxattr")):
		return &fs.PathError{Op: f.op, Path: at.Path, Err: e}
	case errors.As(at.Err, &reason) && reason.SELinux:
		return &fs.PathError{Op: f.op, Path: at.Path, Err: reason}
	case reason != nil: // go-selinux's callers may compare the errno
		return &fs.PathError{Op: f.op, Path: at.Path, Err: reason.Errno}
	case !is && errors.Is(at.Err, syscall.ENOTSUP):
		// The mount says that it has no labels; the call would have said it.
		return &fs.PathError{Op: f.op, Path: at.Path, Err: syscall.ENOTSUP}
	}
	return at
}

// sum makes the error of a run that ended with err.
func (f *failures) sum(err error) error {
	if err == nil {
		return nil
	}
	var at *fs.PathError
	var some *IncompleteError
	located, several := errors.As(err, &at), errors.As(err, &some)
	switch {
	case located && errors.Is(err, ErrRefused):
		return &refusal{at}
	case f.n == 0 && located:
		return f.word(at)
	case f.n == 0:
		return err
	case f.n == 1 && located && at.Path == f.kept[0].Path:
		return f.kept[0]
	}
	var all []error
	n := f.n
	if several {
		n = some.Failed
	} else {
		all = append(all, err) // what ended the run
	}
	for _, k := range f.kept {
		if (f.other || !several) && errors.Is(k, syscall.ENOTSUP) {
			k = &fs.PathError{Op: k.Op, Path: k.Path, Err: errors.New(syscall.ENOTSUP.Error())}
		}
		all = append(all, k)
	}
	return &IncompleteError{Failed: n, First: all}
}

// refusal is ErrRefused in go-selinux's words.
type refusal struct{ at *fs.PathError }

func (e *refusal) Error() string {
	why := strings.TrimPrefix(e.at.Err.Error(), ErrRefused.Error())
	return "SELinux relabeling of " + e.at.Path + " is not allowed" + why
}

// Unwrap gives the *fs.PathError that wraps ErrRefused.
func (e *refusal) Unwrap() error { return e.at }
