// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package undofile

import "os"

func datasync(f *os.File) error { return f.Sync() }

func syncParent(string) error { return nil }
