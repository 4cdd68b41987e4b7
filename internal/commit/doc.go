// SPDX-License-Identifier: Apache-2.0

// Package commit is for the first two sentences of the contract: a root that has the label is
// trusted for all beneath it. Lock, Begin, the walk and End follow each other in one goroutine.
//
//	lock_linux.go   one relabel of a volume at a time, in this process and in all
//	claim_linux.go  what is recorded beside a root's label, for the next run and for probes
//	root_linux.go   the states below: seal, commit, second reading
//	rival_linux.go  Ours: whether the root is still this run's, for any goroutine
//	order_linux.go  what comes to the disk before what
//	times_linux.go  whether anything was created in the root since
//
// Everything that ever writes the root's label or claim is a step between two states:
//
//	state      what the root has         entered when                      a run that is killed there
//	right      the label, no claim       Begin finds that                  changed nothing but strays
//	found      another, or a claim       Begin finds that                  changed nothing
//	claimed    the same, this claim      before the first change           is trusted for no label
//	sealed     a seal, this claim        then; or the kernel takes no seal is completed by the next
//	committed  the label, this claim     End: all beneath has the label    is read again by the next
//	ended      the label, no claim       End: so has what came since       is done
//	ended      a seal, a claim           something failed, from any state  is completed by the next
//
// Without a claim, as where its owner left no room, the label alone counts. NoSeal goes from
// found to committed, and a dry run nowhere.
package commit

import "errors"

// ErrOvertaken is the error where the root lost what this run had left on it.
var ErrOvertaken = errors.New("another relabel seems to be at work")

type state uint8

const (
	found state = iota
	right
	claimed
	sealed
	committed
	ended
)
