// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that a caller may branch on, with errors.Is. Where the kernel or the
// filesystem cannot bear labels the error is errors.ErrUnsupported, and ENOTSUP if
// it is the filesystem that cannot.
var (
	// ErrLabel says that the label is not a security context.
	ErrLabel = errors.New("not a security context")
	// ErrRefused says that the root is a directory of the system that is
	// never relabelled.
	ErrRefused = errors.New("relabelling is not allowed")
	// ErrOvertaken says that the root lost what this run had left on it: another
	// relabel seems to be at work, which does not share the lock.
	ErrOvertaken = errors.New("another relabel seems to be at work")
	// ErrHardLinks says that a file has several names, where Options.HardLinks
	// makes that an error.
	ErrHardLinks = errors.New("the file has several names (hard links)")
	// ErrOtherTree says that what lies at a recorded path is not what was
	// labelled there.
	ErrOtherTree = errors.New("it is not the tree that was labelled")
)

// Incomplete is Tree's error when several entries failed.
type Incomplete struct {
	Failed int64   // how many
	First  []error // the first of them, each an *fs.PathError
}

func (e *Incomplete) Error() string {
	return fmt.Sprintf("%d entries failed, the first: %v", e.Failed, e.First[0])
}

// Unwrap lets errors.Is and errors.As find what the failures were.
func (e *Incomplete) Unwrap() []error { return e.First }

// Hung is the error when a stopped walk could not wait for a call that hangs
// in the kernel, as on a network filesystem whose server is gone.
type Hung struct {
	Calls []HungCall // what does not return
	Cause error      // why the walk was stopped
}

// HungCall is a system call that has not returned.
type HungCall struct {
	Call string // as in "getxattrat"
	Path string // what it was made for
}

func (c HungCall) String() string { return fmt.Sprintf("%s %q", c.Call, c.Path) }

func (e *Hung) Error() string {
	calls := make([]string, len(e.Calls))
	for i, c := range e.Calls {
		calls[i] = c.String()
	}
	return fmt.Sprintf("%v; still waiting for the filesystem: %s", e.Cause, strings.Join(calls, ", "))
}

// Unwrap is why the walk was stopped.
func (e *Hung) Unwrap() error { return e.Cause }
