// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/fastlabel/fastlabel/internal/commit"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/internal/steal"
	"github.com/fastlabel/fastlabel/internal/walk"
)

// Errors that a caller may branch on, with errors.Is. Where the kernel or the filesystem cannot
// have labels the error is errors.ErrUnsupported, and ENOTSUP if it is the filesystem that cannot; so
// is an *IncompleteError with one entry that cannot: ask for that first.
var (
	ErrLabel     = secctx.ErrInvalid
	ErrRefused   = errors.New("relabelling is not allowed")               // of a system directory; see also Tree
	ErrLocked    = errors.New("another relabel of the volume is at work") // for longer than the caller waits
	ErrOvertaken = commit.ErrOvertaken                                    // one that does not share the lock: the root lost this one's label or claim
	ErrHardLinks = walk.ErrHardLinks                                      // see LinksError
	ErrStopped   = errors.New("the relabel was stopped")                  // by Stop, Group.Stop or Group.Shutdown
)

// also is an error that is others as well.
type also struct {
	error
	is []error
}

// Unwrap gives all that the error is.
func (e *also) Unwrap() []error { return e.is }

// threadApart is the error where path may lead the calling thread elsewhere than the threads
// that do the work.
func threadApart(path string) error {
	return &fs.PathError{Op: "relabel", Path: path, Err: fmt.Errorf("%w: the calling thread has a root directory or a mount namespace of its own; call from another thread", ErrRefused)}
}

// IncompleteError is Tree's error when several entries failed.
type IncompleteError struct {
	Failed int64   // how many
	First  []error // the first of them, and of each further errno; each an *fs.PathError
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("%d entries failed, the first: %v", e.Failed, cmp.Or(e.First...))
}

func (e *IncompleteError) Unwrap() []error { return e.First }

// HungError is the error of a stopped run of which a call hangs in the kernel, as on a network
// filesystem whose server is gone.
type HungError struct {
	Calls []HungCall // what does not return
	Cause error      // why the run was stopped, or not begun
}

// HungCall is a system call that has not returned, or a function without a context.
type HungCall struct {
	Call string // as in "getxattrat" or "Inspect"
	Path string // what it was made for
}

func (c HungCall) String() string { return fmt.Sprintf("%s %q", c.Call, c.Path) }

func (e *HungError) Error() string {
	calls := make([]string, len(e.Calls))
	for i, c := range e.Calls {
		calls[i] = c.String()
	}
	return fmt.Sprintf("%v; still waiting for the filesystem: %s", e.Cause, strings.Join(calls, ", "))
}

func (e *HungError) Unwrap() error { return e.Cause }

func hung(calls []run.Call, cause error) error { return &HungError{hungCalls(calls), cause} }

func hungCalls(calls []run.Call) (hung []HungCall) {
	for _, c := range calls {
		hung = append(hung, HungCall(c))
	}
	return hung
}

// goOn continues a panic of a worker in the goroutine of the caller.
func goOn(err error) {
	if p := new(steal.Panic); errors.As(err, &p) {
		panic(p)
	}
}
