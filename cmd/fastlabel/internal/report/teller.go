// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/relabel"
)

// Teller passes on what the engine reports about one root, and remembers which
// failures that were.
type Teller struct {
	Reporter
	Root string
	told map[string]bool // the failures that were passed on
	kept int             // the bytes of their texts
}

func NewTeller(r Reporter, root string) *Teller {
	return &Teller{Reporter: r, Root: root, told: map[string]bool{}}
}

// memory bounds the texts that a teller keeps: some 16,384 of ordinary length.
const memory = 4 << 20

// Failed reports a failure, but for one that Tree returns with a sentence about it.
func (t *Teller) Failed(err error) {
	var at *fs.PathError
	if errors.Is(err, errors.ErrUnsupported) && errors.As(err, &at) && at.Path == t.Root {
		return
	}
	// Tree returns a few of the first failures again, and those are told by then. A path
	// may be as long as the tree is deep.
	if text := err.Error(); len(text) <= memory-t.kept {
		t.told[text] = true
		t.kept += len(text)
	}
	t.Failure(t.Root, err)
}

// Stalled reports calls that do not return, each once.
func (t *Teller) Stalled(calls []relabel.HungCall) {
	for _, c := range calls {
		if key := "stalled " + c.String(); !t.told[key] {
			t.told[key] = true
			t.Stall(t.Root, c)
		}
	}
}

// End reports what was not reported before of err, which Tree returned.
func (t *Teller) End(ctx context.Context, err error) {
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
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		parts := many.Unwrap()
		known := !slices.ContainsFunc(parts, func(e error) bool { return !t.told[e.Error()] })
		if known { // a sum of what was told
			return
		}
		if err.Error() == errors.Join(parts...).Error() {
			for _, e := range parts {
				t.End(ctx, e)
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

// bareEnd tells whether err is the end of ctx and nothing else: the result
// says that. A call that hangs is told with its path.
func bareEnd(ctx context.Context, err error) bool {
	return exit.IsEnd(ctx, err) && (err.Error() == ctx.Err().Error() || err.Error() == context.Cause(ctx).Error())
}
