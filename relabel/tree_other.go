// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package relabel

import (
	"context"
	"errors"
)

// filesForAll is of no matter where nothing is labelled.
func filesForAll() int { return 0 }

// Tree labels root and all beneath it; here it answers errors.ErrUnsupported.
func Tree(_ context.Context, root, label string, _ Options) (Report, error) {
	return Report{Root: root, Label: label}, errors.ErrUnsupported
}

func labelTree(ctx context.Context, root, label string, o Options) (Report, error) {
	return Tree(ctx, root, label, o)
}

func volumeAt(string) (volumeID, error) { return volumeID{}, errors.ErrUnsupported }

// Labelled reads labels; here it answers errors.ErrUnsupported.
func Labelled(_, _ string, _ Depth) (bool, error) { return false, errors.ErrUnsupported }

// Interrupted finds a seal; here it answers errors.ErrUnsupported.
func Interrupted(_, _ string) (bool, error) { return false, errors.ErrUnsupported }

// LastCommit reads a mark; here it answers errors.ErrUnsupported.
func LastCommit(_ string) (Commit, error) { return Commit{}, errors.ErrUnsupported }
