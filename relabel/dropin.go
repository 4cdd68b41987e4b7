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

// The drop-ins import go-selinux for two things: whether SELinux is on, which a runtime may have
// settled with selinux.SetDisabled, and the error values that a caller may test for.

// Relabel takes the place of go-selinux's label.Relabel: it gives path and everything beneath it
// the label, with the level s0 if shared. Where SELinux is off, or was turned off with
// go-selinux's SetDisabled, and where fileLabel is empty, it returns nil. The rest is Chcon(path,
// fileLabel, true).
func Relabel(path, fileLabel string, shared bool) error {
	return RelabelContext(context.Background(), path, fileLabel, shared)
}

// RelabelContext is Relabel for a request that may end: when ctx ends it returns a *PendingError,
// and the work continues for ten minutes without a caller. One who asks again in that time for the
// same volume and label joins it; or has its error or, if it has succeeded, the root looked at. Another relabel of the volume is waited for as long as ctx lets
// it. Where the filesystem does not answer the error is a *HungError. A ctx that cannot end makes
// it Relabel.
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

// Stop ends what RelabelContext has under way on the volume at path, whatever the label, and waits
// until nothing is open there any more: then it can be unmounted. Callers who wait get ErrStopped.
// If ctx ends first, the error is a *HungError where the filesystem does not answer. Relabel and
// Chcon, which have no context, go on, and so does what is under way on a directory beneath path.
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

// Chcon takes the place of go-selinux's selinux.Chcon: it gives path the label, and with recurse
// everything beneath it too, also where SELinux is off. An empty label does nothing. A link is
// labelled itself, also where path has a slash behind it.
//
// With recurse it is Tree with a context that never ends and the zero Options. Another relabel of
// the volume is waited for, but no longer than two minutes (ErrLocked); where that was a call like
// this one in this process, its work is this one's too. Without recurse path alone is labelled,
// under the same lock: then SkipRoot and Inspect trust a label that says nothing of what is beneath.
//
// A single failure is an *os.PathError with the full path, "lsetxattr(label=…)" as Op where a
// label could not be written, and the bare errno. In an *IncompleteError errors.Is finds each
// errno that occurred, but ENOTSUP only if nothing else failed: callers of go-selinux ignore
// ENOTSUP. What is no security context is ErrLabel, go-selinux's ErrInvalidLabel and EINVAL,
// before anything is touched; an empty path is its ErrEmptyPath.
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
