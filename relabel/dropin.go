// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"io/fs"
	"strings"
	"syscall"

	"github.com/opencontainers/selinux/go-selinux"

	"github.com/fastlabel/fastlabel/internal/secctx"
)

// The drop-ins import go-selinux for two things that a caller of it shares with
// it: whether SELinux is on, which a runtime may have settled for its process
// with selinux.SetDisabled, and the error values that it may test for. The work
// is Tree's.

// Relabel takes the place of go-selinux's label.Relabel: it gives path and
// everything beneath it the context fileLabel, with the level s0 if shared.
//
// Where SELinux is off, or was turned off with go-selinux's SetDisabled, and
// where fileLabel is empty, it returns nil before it looks at anything else. A
// label of fewer than three fields is an error that wraps go-selinux's
// ErrInvalidLabel. The rest is Chcon(path, fileLabel, true).
func Relabel(path, fileLabel string, shared bool) error {
	return RelabelContext(context.Background(), path, fileLabel, shared)
}

// RelabelContext is Relabel for a request that may end: when ctx ends it returns a
// *PendingError, which wraps what ended ctx, and the work goes on for two minutes without
// a caller. One who asks again in that time for the same volume and label joins it. So a
// volume that takes longer than a request is walked once. Another relabel of the volume is
// waited for as long as ctx lets it. Where the filesystem does not answer the error is a
// *HungError. Before a volume is unmounted, Stop ends what is under way there. A ctx that
// cannot end makes it Relabel.
func RelabelContext(ctx context.Context, path, fileLabel string, shared bool) error { //nolint:revive // it is Relabel with a context, as the standard library names such
	if !selinux.GetEnabled() || fileLabel == "" {
		return nil
	}
	if shared {
		fields := strings.SplitN(strings.TrimSuffix(fileLabel, "\x00"), ":", 4)
		if len(fields) < 3 {
			_, err := secctx.Canonical(fileLabel)
			return invalid(path, err)
		}
		fileLabel = strings.Join(fields[:3], ":") + ":s0"
	}
	return change(ctx, path, fileLabel, true)
}

// Stop ends what RelabelContext has under way on the volume at path, whatever the label, and
// waits until nothing is open there any more: then it can be unmounted. Callers who wait get
// ErrStopped. If ctx ends first, the error is a *HungError where the filesystem does not
// answer. It does not end Relabel and Chcon, which have no context, nor what is under way on a
// directory beneath path.
func Stop(ctx context.Context, path string) error { return joined.Stop(ctx, trimmed(path)) }

// trimmed is path without slashes at its end, which would follow a link.
func trimmed(path string) string {
	if t := strings.TrimRight(path, "/"); t != "" || path == "" {
		return t
	}
	return "/"
}

// joined are the calls of RelabelContext.
var joined Group

// dropinPatience is how long Relabel and Chcon wait for another relabel of the volume: as
// long as the kubelet waits for a request.
const dropinPatience = asLong

// Chcon takes the place of go-selinux's selinux.Chcon: it gives path the context
// label, and with recurse everything beneath it too. It works without SELinux
// being on.
//
// An empty path is go-selinux's ErrEmptyPath, an empty label does nothing. A link
// is labelled itself, also where path has a slash behind it. The directories of
// the system are refused, by whatever name they are reached (ErrRefused).
//
// With recurse it is Tree with a context that never ends and Options as they are
// at zero. So the root's label means the same by whatever function it was written. Nothing is
// logged. Another relabel of the same volume is waited for, but no longer than two minutes
// (ErrLocked); where that was a call of this process like this one, its work is this one's too. A
// path that is missing is an error; what is removed under the walk, path included, is none.
//
// Without recurse only path itself is labelled; a directory under the same lock. One
// that is gone is no error. A directory that was labelled so vouches for nothing beneath
// it: do not trust it (Options.Skip).
//
// A single failure is an *os.PathError with the full path, "lsetxattr(label=…)"
// as Op where a label could not be written, and the bare errno. Several are an
// *IncompleteError, in which errors.Is finds each errno that occurred. One is kept
// from it: callers of go-selinux ignore ENOTSUP, for it says that the volume
// has no labels, and would ignore the other failures too. So ENOTSUP is
// found only if nothing else failed; else those entries are in the text alone.
//
// What is no security context is an error before anything is touched, and
// wraps ErrLabel, go-selinux's ErrInvalidLabel and EINVAL, which is the kernel's
// answer to it.
func Chcon(path, label string, recurse bool) error {
	return change(context.Background(), path, label, recurse)
}

func change(ctx context.Context, path, label string, recurse bool) error {
	if path == "" {
		return selinux.ErrEmptyPath
	}
	if label == "" {
		return nil
	}
	want, err := secctx.Canonical(label)
	if err != nil {
		return invalid(path, err)
	}
	return chcon(ctx, trimmed(path), want, recurse)
}

// invalid is the error for a label that is none.
func invalid(path string, why error) error {
	return &fs.PathError{Op: "relabel", Path: path, Err: &also{why, []error{why, selinux.ErrInvalidLabel, syscall.EINVAL}}}
}

// also is an error that callers of go-selinux find to be others.
type also struct {
	error
	is []error
}

// Unwrap gives all that the error is.
func (e *also) Unwrap() []error { return e.is }
