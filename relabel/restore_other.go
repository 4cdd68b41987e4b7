// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package relabel

import (
	"context"
	"errors"
	"iter"

	"github.com/fastlabel/fastlabel/relabel/undo"
)

// CheckRestore needs Linux.
func CheckRestore(context.Context, string, undo.Header, iter.Seq2[undo.Page, error], *Options) (Report, error) {
	return Report{}, errors.ErrUnsupported
}

// Restore needs Linux.
func Restore(context.Context, string, undo.Header, iter.Seq2[undo.Page, error], *Options) (Report, error) {
	return Report{}, errors.ErrUnsupported
}
