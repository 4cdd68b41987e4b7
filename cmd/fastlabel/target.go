// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/internal/secctx"
)

// defaultLabel is what every container may read and write.
const defaultLabel = "system_u:object_r:container_file_t:s0"

// target works out the label that the flags ask for, in the canonical form.
func target(ctx context.Context, s *settings) (string, error) {
	switch {
	case s.label != "":
		label, err := secctx.Canonical(s.label)
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
		if label, err = secctx.Canonical(label); err != nil {
			return "", exit.UsageError{Err: fmt.Errorf("--reference %s: %w", words.Brief(s.reference), err)}
		}
		return label, nil
	}
	label := ofPolicy("/sys/fs/selinux/mls")
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

// ofPolicy is the default label as the loaded policy has it, of which mls says whether it has levels.
func ofPolicy(mls string) string {
	if has, _ := os.ReadFile(mls); string(has) == "0" {
		return strings.TrimSuffix(defaultLabel, ":s0")
	}
	return defaultLabel
}

func looksWhole(value string) bool {
	_, err := secctx.Canonical(value)
	return err == nil
}
