// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package survey

import (
	"context"
	"errors"
)

// Take surveys nothing here.
func Take(context.Context, int, string, func(path string) bool, Limits) Sample {
	return Sample{First: errors.ErrUnsupported, Failed: 1}
}
