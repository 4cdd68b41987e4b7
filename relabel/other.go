// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package relabel

import (
	"context"
	"errors"

	"github.com/fastlabel/fastlabel/internal/mounts"
)

// Where there are no labels all answer errors.ErrUnsupported.

type capabilities struct{}

// SetMaxWorkers does nothing: there are no runs.
func SetMaxWorkers(int) {}

func tree(_ context.Context, path, label string, _ Options, _ inner) (Report, error) {
	return Report{Root: path, Label: label}, errors.ErrUnsupported
}

func apply(_ context.Context, path string, rules Rules, _ Options, _ inner) (Report, error) {
	return Report{Root: path, Label: rules.Label}, errors.ErrUnsupported
}

func inspect(_, _ string, _ Skip) (RootState, error) { return RootState{}, errors.ErrUnsupported }

func threadIsApart() bool { return false }

func volumeAt(string, request) (v mounts.Volume, key request, err error) {
	return v, key, errors.ErrUnsupported
}

// chcon is not where Relabel comes to: here go-selinux says that SELinux is off.
func chcon(context.Context, string, string, bool) error { return errors.ErrUnsupported }
