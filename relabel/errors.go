// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/run"
	"github.com/fastlabel/fastlabel/relabel/internal/steal"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
)

// Errors that a caller may branch on, with errors.Is. Where the kernel or the
// filesystem cannot have labels the error is errors.ErrUnsupported, and ENOTSUP if
// it is the filesystem that cannot.
var (
	// ErrLabel says that the label is not a security context.
	ErrLabel = secctx.ErrInvalid
	// ErrRefused says that the root is a system directory, which is never relabelled, or that
	// the calling thread may see another root: see Tree.
	ErrRefused = errors.New("relabelling is not allowed")
	// ErrLocked says that a drop-in without a context has waited for another relabel of the
	// volume as long as it does.
	ErrLocked = errors.New("another relabel of the volume is at work")
	// ErrOvertaken says that the root lost the label or the claim of this run: another relabel
	// seems to be at work, which does not share the lock.
	ErrOvertaken = commit.ErrOvertaken
	// ErrHardLinks says that a file has several names: see LinksError.
	ErrHardLinks = walk.ErrHardLinks
)

// threadApart is the error where path may lead the calling thread elsewhere than the threads
// that do the work.
func threadApart(path string) error {
	return &fs.PathError{Op: "relabel", Path: path, Err: fmt.Errorf("%w: the calling thread has a root directory or a mount namespace of its own", ErrRefused)}
}

// IncompleteError is Tree's error when several entries failed.
type IncompleteError struct {
	Failed int64   // how many
	First  []error // the first of them, and of each further errno; each an *fs.PathError
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("%d entries failed, the first: %v", e.Failed, cmp.Or(e.First...))
}

// Unwrap lets errors.Is and errors.As find what the failures were.
func (e *IncompleteError) Unwrap() []error { return e.First }

// HungError is the error of a stopped run of which a call hangs in the kernel, as on a network
// filesystem whose server is gone; and that of Inspect where too many such calls hang already.
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

// Unwrap returns why the run was stopped.
func (e *HungError) Unwrap() error { return e.Cause }

// hung returns a HungError.
func hung(calls []run.Call, cause error) error {
	return &HungError{Calls: hungCalls(calls), Cause: cause}
}

func hungCalls(calls []run.Call) (hung []HungCall) {
	for _, c := range calls {
		hung = append(hung, HungCall(c))
	}
	return hung
}

// goOn continues a panic of a worker in the goroutine that called Tree.
func goOn(err error) {
	if p := new(steal.Panic); errors.As(err, &p) {
		panic(p)
	}
}
