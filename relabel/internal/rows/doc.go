// SPDX-License-Identifier: Apache-2.0

// Package rows goes through directory records, a row at a time, of which others can take
// what is left.
//
// A row is names that are labelled in one go (sys.Row); which of them are plain, so that
// nothing else is to be asked of them, is found as they are loaded. What is left of the
// row of a worker that is held up is taken name by name, since one entry may have a whole
// tree beneath it. Where a worker that hangs keeps its row, or the 16 entries of a piece,
// all that follows in it waits for the call: in 20 of 88 runs of TestHung (test/torture)
// directories and what is in them were left undone.
//
// Who owns what: Row.Next is taken by compare and swap, by the worker from name to name,
// and by another that takes all that is left. All else is the worker's; it writes it while
// Next is closed, and holding a mutex, since another goroutine may tell where it hangs.
package rows
