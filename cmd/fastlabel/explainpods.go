// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/seclabel"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/wait"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/workload"
	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel"
)

// badPods is what is wrong with a text that could be read.
type badPods struct{ error }

// podsIn reads --for.
func podsIn(ctx context.Context, s *settings, stdin io.Reader) (workload.Pods, error) {
	if s.forPods == "" {
		return workload.Pods{}, nil
	}
	const most = 1 << 20 // what a parser makes of it is a hundred times that
	read := func() ([]byte, error) {
		if s.forPods == "-" {
			return site.ReadAtMost(stdin, most)
		}
		f, err := os.Open(s.forPods)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		return site.ReadAtMost(f, most)
	}
	pods, err := wait.Within(ctx, func() (workload.Pods, error) {
		text, err := read()
		if err != nil && !errors.As(err, new(*fs.PathError)) {
			err = &fs.PathError{Op: "read", Path: s.forPods, Err: err}
		}
		if err != nil {
			return workload.Pods{}, err
		}
		pods, err := workload.Read(text)
		if err != nil {
			err = badPods{err}
		}
		return pods, err
	})
	if err != nil && exit.IsEnd(ctx, err) && s.forPods != "-" {
		err = &relabel.Hung{Calls: []relabel.HungCall{{Call: "read", Path: s.forPods}}, Cause: err}
	}
	if err != nil && !errors.As(err, new(badPods)) {
		return workload.Pods{}, err
	}
	if err != nil {
		return pods, exit.UsageError{Err: fmt.Errorf("--for %s: %w", words.Brief(s.forPods), errors.New(words.Cut(words.Clean(err.Error()), 1000)))}
	}
	for i := range pods.Containers { // a level of a wrong form is told before anything is begun
		c := &pods.Containers[i]
		label, err := secctx.Compose(seclabel.Default, c.User, "", "", c.Level)
		if err != nil {
			return pods, exit.UsageError{Err: fmt.Errorf("--for %s: %s, container %s: %w", words.Brief(s.forPods), words.Brief(c.Pod), words.Brief(c.Name), err)}
		}
		if c.Level != "" {
			c.Level = seclabel.Level(label)
		}
	}
	return pods, nil
}
