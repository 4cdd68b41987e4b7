// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package mounts

// ThreadIsApart is of no matter where nothing is labelled.
func ThreadIsApart() bool { return false }
