// SPDX-License-Identifier: Apache-2.0

// Package undo has what a record of former labels consists of. relabel.Tree hands
// it to a Recorder before it overwrites them, and relabel.Restore puts them back.
package undo

import (
	"errors"
	"time"
)

// ErrOtherTree says that what lies at a recorded path is not what was labelled
// there.
var ErrOtherTree = errors.New("it is not the tree that was labelled")

// Recorder keeps the labels that a run is about to overwrite. See
// relabel.Options.
type Recorder interface {
	// Begin is called once, before the run writes anything. It is not called
	// where nothing is walked, and not in a dry run.
	Begin(h Header) error
	// Keep is called before anything of what it is handed is written: it
	// returns nil when all of it is on disk. It must not keep the slices. Calls
	// are concurrent.
	Keep(pages []Page) error
}

// Header says of what a record is.
type Header struct {
	Root  string    // the root's path, absolute, links resolved
	Label string    // the label that the run gives, in canonical form; "" by rules
	Began time.Time // the run, before it read anything; by the clock of files
	// Ino, Birth and Filesystem tell the root from others: its inode number, when
	// it was created (zero where the filesystem does not say), and the magic
	// number of its filesystem (statfs(2)).
	Ino        uint64
	Birth      time.Time
	Filesystem int64
	Former     Former // the root's own label; it has no name
	Claimed    bool   // by which it vouched for nothing: a run had not ended, or was by rules
	// Partial says to relabel.Restore that pages may be missing, or that the run was
	// not Complete, or skipped something, which another run may have labelled since.
	Partial bool
}

// Former is what an entry had.
type Former struct {
	Name string
	// Ino is the entry's inode number, 0 where directory records do not tell.
	Ino   uint64
	Label string // the attribute's bytes, with the NUL that may end them
	None  bool   // it had no label at all
	Given string // the label that the run gives it; a Recorder keeps it where Header.Label is ""
}

// Page is entries of one directory.
type Page struct {
	Dir     string // beneath the root, names joined by slashes; "" is the root
	Entries []Former
}
