// SPDX-License-Identifier: Apache-2.0

// Package commit keeps the second promise of the project: a root that has the label
// vouches for all beneath it.
//
//	lock_linux.go   one relabel of a volume at a time, in this process and in all
//	claim_linux.go  what a root says beside its label, to the next run and to one who asks
//	root_linux.go   the root's label, the seal before the first change; whether it is still ours
//	order_linux.go  what comes to the disk before what
//	times_linux.go  whether anything was created in the root since
//	close_linux.go  the end: commit, second reading; or a root that is sealed again
//
// It walks and counts nothing: what it has to know of that is handed in as a Run.
// Lock, Open, Seal, the walk and Close follow each other in one goroutine.
// While the walk is under way Due and Ours may be called by any; and once the root is
// labelled, Revoke beside a Close that hangs.
package commit

import "errors"

// ErrOvertaken says that the root lost what this run had left on it.
var ErrOvertaken = errors.New("another relabel seems to be at work")
