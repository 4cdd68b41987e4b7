// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// MaxListed is how many failures, and how many skipped entries, are listed for
// each PATH without -v: about a screen.
const MaxListed = 20

// Source makes events of what the engine reports about one PATH. The engine calls back
// one at a time.
type Source struct {
	Reporter
	Root   string
	Listed int  // so many failures, and as many skipped entries; 0: all
	User   bool // not root: what is denied has one cause

	failed, skipped, denied int
	told                    map[error]bool // failures that need not be reported again
	stalled                 map[relabel.HungCall]bool
}

// remembered bounds the failures that a source knows again: Tree returns a few of the
// first once more.
const remembered = 4096

// Failed reports a failure, but for one that Tree returns with a sentence about it.
func (s *Source) Failed(err error) {
	var at *fs.PathError
	if errors.Is(err, errors.ErrUnsupported) && errors.As(err, &at) && at.Path == s.Root {
		return
	}
	if s.told == nil {
		s.told = map[error]bool{}
	}
	if len(s.told) < remembered {
		s.told[err] = true
	}
	if s.User && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)) {
		s.denied++
	} else if s.failed++; s.Listed == 0 || s.failed <= s.Listed {
		s.Failure(s.Root, err)
	}
}

func (s *Source) Changed(path, from, to string) {
	s.Put(Event{Kind: Change, Root: s.Root, Path: path, From: from, To: to})
}

func (s *Source) Skipped(path, reason string) {
	if s.skipped++; s.Listed == 0 || s.skipped <= s.Listed {
		s.Put(Event{Kind: Skip, Root: s.Root, Path: path, Text: reason})
	}
}

func (s *Source) Waits(holder string) {
	s.Put(Event{Kind: Status, Root: s.Root, State: "waiting", Text: holder})
}

// Stalled reports calls that do not return, each once.
func (s *Source) Stalled(calls []relabel.HungCall) {
	for _, c := range calls {
		if s.stalled == nil {
			s.stalled = map[relabel.HungCall]bool{}
		}
		if !s.stalled[c] {
			s.stalled[c] = true
			s.Stall(s.Root, c)
		}
	}
}

// End reports what was not reported before: of err, which Tree returned, and how many
// events were left out.
func (s *Source) End(ctx context.Context, err error) {
	s.last(ctx, err)
	more := func(n int, text string) string { return words.Thousands(int64(n)) + text }
	if s.Listed > 0 && s.failed > s.Listed {
		s.Put(Event{Kind: Failure, Root: s.Root, Text: more(s.failed-s.Listed, " more failures"), More: true})
	}
	if s.denied > 0 {
		s.Put(Event{Kind: Failure, Root: s.Root, Text: "not root: " + more(s.denied, " of its entries belong to others, or are closed to this user"), More: true})
	}
	if s.Listed > 0 && s.skipped > s.Listed {
		s.Put(Event{Kind: Note, Root: s.Root, Text: more(s.skipped-s.Listed, " more skipped"), More: true})
	}
}

func (s *Source) last(ctx context.Context, err error) {
	var hung *relabel.HungError
	var at *fs.PathError
	switch parts := partsOf(err); {
	case err == nil || s.told[err] || bareEnd(ctx, err):
	case errors.As(err, &hung) && len(hung.Calls) > 0:
		for _, e := range FailuresOf(hung) {
			s.Failure(s.Root, e)
		}
	case len(parts) > 0:
		for _, e := range parts {
			s.last(ctx, e)
		}
	case errors.As(err, &at) && s.told[at] && strings.HasPrefix(err.Error(), at.Error()+": "):
		s.Note(s.Root, strings.TrimPrefix(err.Error(), at.Error()+": ")) // the same, and a sentence about it
	default:
		s.Failure(s.Root, err)
	}
}

// partsOf returns the errors of which err is the sum and no more.
func partsOf(err error) []error {
	var sum *relabel.IncompleteError
	many, ok := err.(interface{ Unwrap() []error })
	if ok && (errors.As(err, &sum) && sum.Error() == err.Error() || err.Error() == errors.Join(many.Unwrap()...).Error()) {
		return many.Unwrap()
	}
	return nil
}

// bareEnd reports whether err is the end of ctx and nothing else: the result
// says that. A call that hangs is reported with its path.
func bareEnd(ctx context.Context, err error) bool {
	return exit.IsEnd(ctx, err) && (err.Error() == ctx.Err().Error() || err.Error() == context.Cause(ctx).Error())
}
