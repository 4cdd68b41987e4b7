// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/caller"
	"github.com/fastlabel/fastlabel/relabel/internal/policy"
)

// Failures gathers what failed, told by one goroutine at a time, for the error of a
// drop-in.
type Failures struct {
	N int64 // were told

	op      string
	refused error           // what a refusal wraps
	kept    []*fs.PathError // the first, and the first of each further errno
	known   []syscall.Errno // in kept
	other   bool            // something failed that is not ENOTSUP
}

// New is of a run to the label want. What is refused has an error that wraps refused.
func New(want string, refused error) *Failures {
	return &Failures{op: "lsetxattr(label=" + want + ")", refused: refused}
}

// Add takes a failure.
func (f *Failures) Add(err error) {
	f.N++
	var at *fs.PathError
	if !errors.As(err, &at) {
		at = &fs.PathError{Op: "relabel", Err: err} // the engine tells no such
	}
	var e syscall.Errno
	is := errors.As(err, &e)
	f.other = f.other || e != syscall.ENOTSUP
	if fresh := is && !slices.Contains(f.known, e); fresh || len(f.kept) < caller.Kept {
		if fresh {
			f.known = append(f.known, e)
		}
		f.kept = append(f.kept, f.word(at))
	}
}

// word words an error as go-selinux does.
func (f *Failures) word(at *fs.PathError) *fs.PathError {
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

// Sum is the error of a run that ended with err: one or, if that is nil, all that are
// kept. several says that nothing but failures ended the run.
func (f *Failures) Sum(err error, several bool) (all []error, one error) {
	var at *fs.PathError
	located := errors.As(err, &at)
	switch {
	case located && errors.Is(err, f.refused):
		return nil, &refusal{at, f.refused}
	case f.N == 0 && located:
		return nil, f.word(at)
	case f.N == 0:
		return nil, err
	case f.N == 1 && located && at.Path == f.kept[0].Path:
		return nil, f.kept[0]
	case !several:
		all = append(all, err) // what ended the run
	}
	for _, k := range f.kept {
		if (f.other || !several) && errors.Is(k, syscall.ENOTSUP) {
			k = &fs.PathError{Op: k.Op, Path: k.Path, Err: errors.New(syscall.ENOTSUP.Error())}
		}
		all = append(all, k)
	}
	return all, nil
}

// refusal is an error in go-selinux's words.
type refusal struct {
	at  *fs.PathError
	why error // what it wraps
}

func (e *refusal) Error() string {
	why := strings.TrimPrefix(e.at.Err.Error(), e.why.Error())
	return "SELinux relabeling of " + e.at.Path + " is not allowed" + why
}

// Unwrap gives the *fs.PathError that wraps why.
func (e *refusal) Unwrap() error { return e.at }
