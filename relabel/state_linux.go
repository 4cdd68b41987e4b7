// SPDX-License-Identifier: Apache-2.0

package relabel

import "github.com/fastlabel/fastlabel/relabel/internal/walk"

// state is how far the run is.
func (r *run) state() State {
	n := r.Now()
	var s State
	s.Path, s.Call = r.Where()
	s.Seen, s.Written, s.Right = n.Seen, n.Of[walk.Written], n.Of[walk.Right]
	s.Vanished, s.Skipped, s.Failed = n.Of[walk.Vanished], n.Of[walk.Skipped], n.Of[walk.Failed]
	s.Found, s.Entered = max(n.Found, n.Entered), n.Entered // the worker that found one may tell later than the one that entered it
	return s
}
