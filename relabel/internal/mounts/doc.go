// SPDX-License-Identifier: Apache-2.0

// Package mounts knows where a run may go: what is mounted in the tree, which mount
// a descriptor stands in, and which file is which.
//
// A Proc is opened before the root, and by path; nothing is looked up by a path of
// /proc afterwards. One goroutine learns the table of mounts, before the walk begins;
// from then on a Proc and each Mount are only read, by any goroutine.
package mounts
