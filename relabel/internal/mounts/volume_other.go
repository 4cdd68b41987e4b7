// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package mounts

import (
	"errors"

	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// VolumeAt answers errors.ErrUnsupported here.
func VolumeAt(*watch.Activity, string) (Volume, error) { return Volume{}, errors.ErrUnsupported }

// ThreadIsApart is of no matter where nothing is labelled.
func ThreadIsApart() bool { return false }
