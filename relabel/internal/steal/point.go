// SPDX-License-Identifier: Apache-2.0

package steal

// point names a place between two steps whose order matters (see pool.go).
type point uint8

const (
	raised    point = iota // Push: counted as pending, not yet in the deque
	appended               // Push: in the deque, nobody woken yet
	announced              // park: listed as idle, deques not yet looked at again
	rescanned              // park: deques seen empty, not yet asleep
	found                  // park: an item after all, still listed as idle
	chosen                 // wake: off the idle list, not yet woken
	taken                  // an item is out of its deque, not yet worked on
	worked                 // an item is worked on, still pending
	drained                // nothing is pending, sleepers not yet told
	halted                 // the pool is stopped, sleepers not yet told
)
