// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/opencontainers/selinux/go-selinux"
	"github.com/spf13/cobra"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/internal/secctx"
)

const labelHelp = `Exit codes: 0 done; 1 some failed; 2 usage, nothing begun; 3 refused, or no
labels there; 4 differences found; 124 --timeout reached; 130, 143 interrupted
` + ownLevel

const ownLevel = `-n, verify and probe compare with s0, and ask for -l if PATH has another level.
`

const examples = `  fastlabel -l s0:c35,c75 /var/lib/pv             # the volume of one pod
  fastlabel -n -v -l s0:c35,c75 /var/lib/pv       # what would change
  find /srv/* -prune -print0 | fastlabel -0 -f -  # many PATHs
`

// labelCommand returns fastlabel itself, and fastlabel label.
func labelCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use:     name + " [flags] PATH...",
		Short:   "label PATH and everything beneath it",
		Long:    labelHelp,
		Example: examples,
		Args:    cobra.ArbitraryArgs,
	}
}

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "verify [flags] PATH...",
		Short:   "read every label, write none",
		Long:    "Differences are listed with -v.\n" + ownLevel + listed + inJSON,
		Example: "  fastlabel verify -v -l s0:c35,c75 /var/lib/pv\n",
	}
}

// defaultLabel is the label that every container may read and write.
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
		label, err := answer(ctx, "getxattr", s.reference, func() (string, error) { return selinux.FileLabel(s.reference) })
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
	for i, value := range [...]string{s.user, s.role, s.typ, s.level} {
		var part [4]string
		part[i] = value
		flag := [...]string{"user", "role", "type", "level"}[i]
		next, err := secctx.Compose(label, part[0], part[1], part[2], part[3])
		if err != nil {
			err = fmt.Errorf("--%s: %w", flag, err)
			if _, bad := secctx.Canonical(value); bad == nil {
				err = fmt.Errorf("--%s %s is a whole label: give it by --label", flag, words.Brief(value))
			}
			return "", exit.UsageError{Err: err}
		}
		label = next
	}
	return label, nil
}

// ofPolicy returns the default label, without a level where the file mls says that the loaded policy
// has none.
func ofPolicy(mls string) string {
	if has, _ := os.ReadFile(mls); string(has) == "0" {
		return strings.TrimSuffix(defaultLabel, ":s0")
	}
	return defaultLabel
}
