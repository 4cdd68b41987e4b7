// SPDX-License-Identifier: Apache-2.0

// Package walk labels what is beneath the top of one mount.
//
//	walk_linux.go      what it is asked to do; how many workers, their beginning, their end
//	small_linux.go     a small tree, which one worker labels without a pool; most are
//	tune_linux.go      as many workers as is best, where it is left to us
//	worker_linux.go    a worker and its items: read a directory, share the rest, go through rows
//	enter_linux.go     a directory: open it, label it, continue with what is in it
//	sort_linux.go      directories of ext4 in the order of inodes, which package order makes
//	label_linux.go     a labeller: one entry, and what stood in its way
//	row_linux.go       a row of plain entries, and the labeller's sweep of it
//	position_linux.go  where a worker is, as others see it
//	dirs_linux.go      directories: which are open, and how a closed one is found again
//	ahead_linux.go     what is near a directory on a cold disk
//
// A Job has what it goes by, and a Top what it begins with.
package walk

import (
	"errors"

	"github.com/fastlabel/fastlabel/internal/sys"
)

// ErrHardLinks is the failure of a file that has several names, with LinksError.
var ErrHardLinks = errors.New("the file has several names (hard links)")

// Want has the label of a directory and of all beneath it: one or, by rules,
// for each entry its own.
type Want struct {
	Label string // with Rules that of the top alone; "": it is left as it is
	Rules Rules  // of what is in it; nil: Label
}

// Rules choose the labels of what is in a directory.
type Rules interface {
	// Entry is the label of an entry, be it a directory; "": it is left as it is.
	Entry(name []byte, kind sys.Kind) (string, error)
	// Beneath returns the Want of the directory name. It is asked once.
	Beneath(name []byte) *Want
}

// Outcome is the end of an entry. Each has exactly one.
type Outcome uint8

const (
	Written Outcome = iota // in a dry run: would be
	Right
	Vanished
	Skipped
	Failed
	outcomes             // how many are counted
	Elsewhere = outcomes // not counted here: a mount that is walked on its own
)

// Tally counts. That of a worker is written by it alone.
type Tally struct {
	Seen int64
	Of   [outcomes]int64

	Found, Entered int64 // directories
}

// Count counts n entries; below 0 it takes as many back.
func (t *Tally) Count(o Outcome, n int) {
	if o != Elsewhere {
		t.Seen += int64(n)
		t.Of[o] += int64(n)
	}
}

// Add counts what o has counted.
func (t *Tally) Add(o Tally) {
	t.Seen += o.Seen
	t.Found += o.Found
	t.Entered += o.Entered
	for i := range t.Of {
		t.Of[i] += o.Of[i]
	}
}
