// SPDX-License-Identifier: Apache-2.0

// Package xattrio reads and writes the label of one entry, which it does not open,
// and has the meaning of the errors for a walk.
//
// Where its Way needs the entry pinned, Pin comes before the calls of an IO and Unpin after them, so
// that what was read, asked about and compared is what is written. The only other place where an
// entry's label is read or written is sys.Attr's Mend, ReadRow and Visit: many names at once.
package xattrio
