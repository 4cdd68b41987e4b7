// SPDX-License-Identifier: Apache-2.0

// Package dropin words errors as go-selinux does, and so that its callers, who ask them
// what they ask of its own, lose none.
package dropin

import (
	"io/fs"
	"syscall"

	"github.com/opencontainers/selinux/go-selinux"
)

// Invalid is the error for a label that is none.
func Invalid(path string, why error) error {
	return &fs.PathError{Op: "relabel", Path: path, Err: invalidLabel{why}}
}

// invalidLabel is a secctx.ErrInvalid that is also what callers of go-selinux may look for.
type invalidLabel struct{ error }

// Unwrap gives all that the error is.
func (e invalidLabel) Unwrap() []error {
	return []error{e.error, selinux.ErrInvalidLabel, syscall.EINVAL}
}
