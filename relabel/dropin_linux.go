// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/dropin"
)

// chcon is Chcon after its arguments were looked at. want is canonical. It waits for
// the lock no longer than patience, or as long as ctx lets it if that is 0. A walk that ctx
// can end is one of joined.
func chcon(ctx context.Context, path, want string, recurse bool, patience time.Duration) error {
	if recurse && ctx.Done() != nil {
		_, f, err := joined.tree(ctx, path, want, TrustNothing)
		if f == nil {
			f = dropin.New(want, ErrRefused)
		}
		return sum(f, err)
	}
	f := dropin.New(want, ErrRefused)
	o := &Options{Trace: quiet(path), inner: inner{patience: patience}}
	o.Trace.Failure = f.Add
	if !recurse {
		return sum(f, chconOne(ctx, path, want, o))
	}
	_, err := Tree(ctx, path, want, o)
	return sum(f, err)
}

// quiet logs at slog.LevelDebug: what a drop-in does is no business of the runtime's log.
func quiet(path string) *Trace { return logTo(slog.Default(), path, slog.LevelDebug) }

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

// sum is the error of a drop-in whose run ended with err.
func sum(f *dropin.Failures, err error) error {
	if err == nil || errors.As(err, new(*PendingError)) || errors.As(err, new(*HungError)) {
		return err
	}
	var some *IncompleteError
	n, several := f.N, errors.As(err, &some)
	if several {
		n = some.Failed
	}
	all, one := f.Sum(err, several)
	if one != nil {
		return one
	}
	return &IncompleteError{Failed: n, First: all}
}
