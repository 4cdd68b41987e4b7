// SPDX-License-Identifier: Apache-2.0

// Package commit keeps the promise that a root which has the label vouches for all
// beneath it.
//
//	lock_linux.go  one relabel of a volume at a time
package commit
