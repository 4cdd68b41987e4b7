// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/relabel"
)

// Teller passes on what the engine tells about one root. The engine's calls of
// one callback are serial, those of two need not be, and a worker that hung in
// the kernel may call after Tree has returned: mu makes all serial, over ends
// them.
type Teller struct {
	Reporter
	Root, Label string

	mu   sync.Mutex
	over bool
	told map[string]bool // the failures that were passed on
	kept int             // the bytes of their texts
}

func NewTeller(r Reporter, root, label string) *Teller {
	return &Teller{Reporter: r, Root: root, Label: label, told: map[string]bool{}}
}

// memory bounds the texts that a teller keeps: some 16,384 of ordinary length.
const memory = 4 << 20

func (t *Teller) Say(what func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		what()
	}
}

func (t *Teller) Failed(err error) {
	t.Say(func() {
		var at *fs.PathError
		if errors.Is(err, errors.ErrUnsupported) && errors.As(err, &at) && at.Path == t.Root {
			return // Tree returns it with a sentence about it
		}
		// Tree returns a few of the first failures again, and those are told
		// by then. A path may be as long as the tree is deep.
		if text := err.Error(); len(text) <= memory-t.kept {
			t.told[text] = true
			t.kept += len(text)
		}
		t.Failure(t.Root, err)
	})
}

// Stalled tells of calls that do not return, each once.
func (t *Teller) Stalled(calls []relabel.HungCall) {
	t.Say(func() {
		for _, c := range calls {
			if key := "stalled " + c.String(); !t.told[key] {
				t.told[key] = true
				t.Stall(t.Root, c)
			}
		}
	})
}

// End tells of err, which Tree returned, what was not told before, and that
// is all about this root.
func (t *Teller) End(ctx context.Context, err error) {
	t.Say(func() {
		t.rest(ctx, err)
		t.over = true
	})
}

func (t *Teller) rest(ctx context.Context, err error) {
	if err == nil || t.told[err.Error()] || bareEnd(ctx, err) {
		return
	}
	var hung *relabel.HungError
	if errors.As(err, &hung) && len(hung.Calls) > 0 {
		for _, e := range FailuresOf(hung) {
			t.Failure(t.Root, e)
		}
		return
	}
	if parts := parts(err); len(parts) > 0 {
		var texts []string
		known := true
		for _, e := range parts {
			texts = append(texts, e.Error())
			known = known && t.told[e.Error()]
		}
		if known { // a sum of what was told
			return
		}
		if err.Error() == strings.Join(texts, "\n") { // errors.Join
			for _, e := range parts {
				t.rest(ctx, e)
			}
			return
		}
	}
	var at *fs.PathError
	if errors.As(err, &at) && t.told[at.Error()] {
		if about, ok := strings.CutPrefix(err.Error(), at.Error()+": "); ok {
			t.Note(t.Root, about) // the same, and a sentence about it
			return
		}
	}
	t.Failure(t.Root, err)
}

// parts returns what err itself, and no error within it, holds together.
func parts(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return nil
}

// bareEnd tells whether err is the end of ctx and nothing else: the result
// says that. A call that hangs is told with its path.
func bareEnd(ctx context.Context, err error) bool {
	return exit.IsEnd(ctx, err) && (err.Error() == ctx.Err().Error() || err.Error() == context.Cause(ctx).Error())
}
