// SPDX-License-Identifier: Apache-2.0

package relabel

import "github.com/fastlabel/fastlabel/relabel/internal/walk"

// state is how far the run is. Locks are taken in the order run, worker;
// none is held during a call.
func (r *run) state() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.live()
	s := State{LastRun: r.lastRun.Load()}
	for _, t := range r.Tasks() {
		if s.Call == "" {
			s.Call = t.Now().Call
		}
		if s.Path == "" {
			s.Path = t.Walk.Load().Path()
		}
	}
	if s.Path != "" {
		s.Call = ""
	}
	s.Seen, s.Written, s.Right = n.Seen, n.Of[walk.Written], n.Of[walk.Right]
	s.Vanished, s.Skipped, s.Failed = n.Of[walk.Vanished], n.Of[walk.Skipped], n.Of[walk.Failed]
	s.Found, s.Entered = max(n.Found, n.Entered), n.Entered // the worker that found one may tell later than the one that entered it
	return s
}

// live is what was counted so far, also by walks that are under way. mu is held.
func (r *run) live() walk.Tally {
	n := r.total
	for _, t := range r.Tasks() {
		n.Add(t.Walk.Load().Tally())
	}
	return n
}
