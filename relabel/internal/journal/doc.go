// SPDX-License-Identifier: Apache-2.0

// Package journal puts back, in one mount, the labels that entries had before a
// run. It says what became of each; to count that, and to tell it, is its caller's.
//
// A Tree belongs to one goroutine. Directories are found by name from the top, each
// inside the mount, and an entry is pinned before it is looked at: what is compared
// is what is written.
package journal
