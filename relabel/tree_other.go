// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package relabel

import (
	"context"
	"errors"

	"github.com/fastlabel/fastlabel/relabel/internal/flight"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
)

// filesForAll is of no matter where nothing is labelled.
func filesForAll() int { return 0 }

// Tree labels root and all beneath it; here it answers errors.ErrUnsupported.
func Tree(_ context.Context, root, label string, _ *Options) (Report, error) {
	return Report{Root: root, Label: label}, errors.ErrUnsupported
}

// CommitShards labels root; here it answers errors.ErrUnsupported.
func CommitShards(ctx context.Context, root, label string, _ int, o *Options) (Report, error) {
	return Tree(ctx, root, label, o)
}

// Check looks for other labels; here it answers errors.ErrUnsupported.
func Check(ctx context.Context, root, label string, o *Options) (Report, error) {
	return Tree(ctx, root, label, o)
}

// Apply labels by rules; here it answers errors.ErrUnsupported.
func Apply(_ context.Context, root string, rules Rules, _ *Options) (Report, error) {
	return Report{Root: root, Label: rules.Label}, errors.ErrUnsupported
}

// CheckApply looks for other labels; here it answers errors.ErrUnsupported.
func CheckApply(ctx context.Context, root string, rules Rules, o *Options) (Report, error) {
	return Apply(ctx, root, rules, o)
}

// run is of no volume, as there are none.
func (g *Group) run(context.Context, *flight.Work[mounts.Volume, request, task]) (*flight.Held, error) {
	return nil, errors.ErrUnsupported
}

// Inspect reads labels; here it answers errors.ErrUnsupported.
func Inspect(_, _ string, _ Trust) (Status, error) { return Status{}, errors.ErrUnsupported }
