// SPDX-License-Identifier: Apache-2.0

// Package xattrio reads and writes the label of one entry, which it does not open,
// and has the meaning of the errors for a walk.
//
// An IO belongs to one goroutine. Where its Way needs the entry pinned, Pin comes
// before the calls and Unpin after them, so that what was read, asked about and
// compared is what is written. What confines a name to its mount is the caller's
// Open. Many names at once, without a word to the scheduler in between, are
// sys.Attr's Mend, ReadRow and Visit: the only other place where an entry's label is
// read or written.
package xattrio
