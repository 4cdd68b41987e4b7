// SPDX-License-Identifier: Apache-2.0

// Package journal keeps and puts back former labels. It knows no walk and writes no
// file: a Recorder has them (package undo).
//
// A Ledger holds what the workers of a walk found to be wrong, until one of them has put
// it on record. Package relabel writes nothing of it before that.
//
// A Restore puts back, in one mount, the labels that entries had before a run, and
// then the root's, if that vouches for no more than it may. To count what became of
// each, and to tell it, is its caller's. Directories are found by name from the top,
// each inside the mount, and an entry is pinned before it is looked at: what is
// compared is what is written.
package journal
