// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package relabel

import (
	"context"
	"errors"
	"iter"
)

// Restore needs Linux.
func Restore(context.Context, string, Header, iter.Seq2[Page, error], Options) (Report, error) {
	return Report{}, errors.ErrUnsupported
}
