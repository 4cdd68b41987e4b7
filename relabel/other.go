// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package relabel

import (
	"context"
	"errors"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/flight"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
)

// Where there are no labels all answer errors.ErrUnsupported.

type capabilities struct{}

func probe() (none capabilities) { return none }

// SetMaxWorkers does nothing: there are no runs.
func SetMaxWorkers(int) {}

func tree(_ context.Context, path, label string, _ Options, _ func() capabilities) (Report, error) {
	return Report{Root: path, Label: label}, errors.ErrUnsupported
}

func apply(_ context.Context, path string, rules Rules, _ Options, _ func() capabilities) (Report, error) {
	return Report{Root: path, Label: rules.Label}, errors.ErrUnsupported
}

func inspect(_, _ string, _ Trust) (Status, error) { return Status{}, errors.ErrUnsupported }

type failures struct{}

func quiet(string) *Trace { return nil }

// chcon is not where Relabel comes to: here go-selinux says that SELinux is off.
func chcon(context.Context, string, string, bool, time.Duration) error { return errors.ErrUnsupported }

func (g *Group) run(context.Context, *flight.Work[mounts.Volume, request, task]) (*flight.Held, error) {
	return nil, errors.ErrUnsupported
}
