// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/seclabel"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/internal/secctx"
)

// target works out the label that the flags ask for, in the canonical form.
func target(ctx context.Context, s *settings) (string, error) {
	switch {
	case s.label != "":
		label, err := seclabel.WithLevel(s.label)
		var bad *secctx.Error
		if errors.As(err, &bad) && bad.BareType {
			err = fmt.Errorf("%w; for a type alone use --type %s", err, words.Brief(bad.Label))
		}
		if err != nil {
			return "", exit.UsageError{Err: fmt.Errorf("--label: %w", err)}
		}
		return label, nil
	case s.reference != "":
		label, err := answer(ctx, "getxattr", s.reference, func() (string, error) {
			// /dev/stdout is a pipe of this program's own where the work is done apart.
			if info, err := os.Stat(s.reference); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
				return "", exit.UsageError{Err: fmt.Errorf("--reference %s: it is a pipe", words.Brief(s.reference))}
			}
			return site.ReadLabel(s.reference)
		})
		if errors.Is(err, syscall.ENODATA) {
			return "", exit.UsageError{Err: fmt.Errorf("--reference %s: it has no label", words.Brief(s.reference))}
		}
		if err != nil {
			return "", err
		}
		if label, err = seclabel.WithLevel(label); err != nil {
			return "", exit.UsageError{Err: fmt.Errorf("--reference %s: %w", words.Brief(s.reference), err)}
		}
		return label, nil
	}
	label := seclabel.Default
	for _, part := range []struct{ flag, user, role, typ, level string }{
		{flag: "user", user: s.user},
		{flag: "role", role: s.role},
		{flag: "type", typ: s.typ},
		{flag: "level", level: s.level},
	} {
		next, err := secctx.Compose(label, part.user, part.role, part.typ, part.level)
		if err != nil {
			err = fmt.Errorf("--%s: %w", part.flag, err)
			if value := part.user + part.role + part.typ + part.level; looksWhole(value) {
				err = fmt.Errorf("--%s %s is a whole label: give it by --label", part.flag, words.Brief(value))
			}
			return "", exit.UsageError{Err: err}
		}
		label = next
	}
	return label, nil
}

func looksWhole(value string) bool {
	_, err := seclabel.WithLevel(value)
	return err == nil
}
