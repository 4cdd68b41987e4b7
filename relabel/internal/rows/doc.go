// SPDX-License-Identifier: Apache-2.0

// Package rows goes through directory records, a row at a time.
//
// A row is names that are labelled in one go (sys.Row); which of them are plain, so that
// nothing else is to be asked of them, is found as they are loaded.
//
// A row belongs to one worker. It loads the next one holding a mutex, since another
// goroutine may ask which entry's call is under way. A worker whose call hangs keeps what
// is left of its buffer until the call returns: the run cannot complete before that.
package rows
