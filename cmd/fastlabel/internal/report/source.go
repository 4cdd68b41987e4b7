// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// MaxListed bounds the failures, and the skipped entries, that are listed for each PATH
// without -v: about a screen.
const MaxListed = 20

// Source makes events of what the engine reports about one PATH. The engine calls back
// one at a time.
type Source struct {
	Reporter
	Root    string
	Listed  int  // so many failures, and as many skipped entries; 0: all
	Changes int  // so many changes; 0: all
	Verify  bool // count the labels that differ
	User    bool // not root: what is denied has one cause

	failed, skipped, denied, changed int

	told    []error // failures that need not be reported again
	stalled []relabel.HungCall
	labels  map[string]int64 // entries that differ, by what they have
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
	if len(s.told) < remembered {
		s.told = append(s.told, err)
	}
	if s.User && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)) {
		s.denied++
	} else if s.failed++; s.Listed == 0 || s.failed <= s.Listed {
		s.Failure(s.Root, err)
	}
}

func (s *Source) Changed(path, from, to string) {
	if s.labels == nil {
		s.labels = map[string]int64{}
	}
	if _, known := s.labels[from]; s.Verify && (known || len(s.labels) < remembered) {
		s.labels[from]++
	}
	if s.changed++; s.Changes == 0 || s.changed <= s.Changes {
		s.Put(Event{Kind: Change, Root: s.Root, Path: path, From: from, To: to})
	}
}

// Labels returns the labels of what differs, the most frequent first: as many as fit a screen,
// and the sum of all others.
func (s *Source) Labels() (all []Labels) {
	const most = 10
	other := Labels{Count: int64(s.changed), Other: true}
	for label, n := range s.labels {
		l := Labels{Label: label, Count: n}
		if !utf8.ValidString(label) {
			l.Exact = base64.StdEncoding.EncodeToString([]byte(label))
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b Labels) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Label, b.Label))
	})
	all = all[:min(len(all), most)]
	for _, l := range all {
		other.Count -= l.Count
	}
	if len(all) > 0 && other.Count > 0 {
		all = append(all, other)
	}
	return all
}

func (s *Source) Skipped(path, reason string) {
	if s.skipped++; s.Listed == 0 || s.skipped <= s.Listed {
		s.Put(Event{Kind: Skip, Root: s.Root, Path: path, Text: reason})
	}
}

func (s *Source) Waits() {
	s.Put(Event{Kind: Status, Root: s.Root, State: "waiting"})
}

// Stalled reports calls that do not return, each once.
func (s *Source) Stalled(calls []relabel.HungCall) {
	for _, c := range calls {
		if !slices.Contains(s.stalled, c) {
			s.stalled = append(s.stalled, c)
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
	if s.Changes > 0 && s.changed > s.Changes {
		s.Note(s.Root, more(s.changed-s.Changes, " more differ; -vv lists all"))
	}
	if s.Listed > 0 && s.skipped > s.Listed {
		s.Put(Event{Kind: Note, Root: s.Root, Text: more(s.skipped-s.Listed, " more skipped"), More: true})
	}
}

func (s *Source) last(ctx context.Context, err error) {
	var hung *relabel.HungError
	var at *fs.PathError
	switch parts := partsOf(err); {
	case err == nil || slices.Contains(s.told, err) || bareEnd(ctx, err):
	case errors.As(err, &hung) && len(hung.Calls) > 0:
		for _, e := range FailuresOf(hung) {
			s.Failure(s.Root, e)
		}
	case len(parts) > 0:
		for _, e := range parts {
			s.last(ctx, e)
		}
	case errors.As(err, &at) && slices.Contains(s.told, error(at)) && strings.HasPrefix(err.Error(), at.Error()+": "):
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
