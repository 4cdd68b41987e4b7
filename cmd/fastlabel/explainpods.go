// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/seclabel"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/workload"
	"github.com/fastlabel/fastlabel/internal/secctx"
)

// podsIn reads --for.
func podsIn(ctx context.Context, s *settings, stdin io.Reader) (pods workload.Pods, err error) {
	if s.forPods == "" {
		return pods, nil
	}
	const most = 1 << 20 // what a parser makes of it is a hundred times that
	text, err := input(ctx, stdin, s.forPods, most)
	if err != nil {
		return pods, err
	}
	bad := func(err error) (workload.Pods, error) {
		return workload.Pods{}, exit.UsageError{Err: fmt.Errorf("--for %s: %s", words.Brief(s.forPods), words.Cut(words.Clean(err.Error()), 1000))}
	}
	if pods, err = workload.Read(text); err != nil {
		return bad(err)
	}
	for i := range pods.Containers { // a level of a wrong form is told before anything is begun
		c := &pods.Containers[i]
		label, err := secctx.Compose(seclabel.Default, c.User, "", "", c.Level)
		if err != nil {
			return bad(fmt.Errorf("%s, container %s: %w", words.Brief(c.Pod), words.Brief(c.Name), err))
		}
		if c.Level != "" {
			c.Level = seclabel.Level(label)
		}
	}
	return pods, nil
}
