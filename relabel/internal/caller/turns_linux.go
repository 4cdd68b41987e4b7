// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"cmp"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
)

// InTurn calls do so many times, one call after the other, each with a task of its own that
// has main's share. A call that hangs keeps the share, and the next one gets a share from
// enter. An error is the end: InTurn returns the first one when all calls have returned.
func (r *Run) InTurn(main *Task, times int, do func(i int, t *Task) error, enter func() (*budget.Share, error)) error {
	type hanging struct {
		ended chan error
		share *budget.Share
	}
	var left []hanging
	var first error
	share := main.Share.Load()
	main.Share.Store(nil)
	defer func() { main.Share.Store(share) }()
	for i := 0; i < times && first == nil; i++ {
		t, ended := r.Task(), make(chan error, 1)
		t.Share.Store(share)
		go func() {
			ended <- do(i, t)
			t.At("", "")
		}()
		select {
		case first = <-ended:
			t.Share.Store(nil)
		case <-t.Stalled():
			left = append(left, hanging{ended, share})
			share, first = enter()
		}
	}
	share.Waits(len(left) > 0)
	for _, h := range left {
		err := <-h.ended
		first = cmp.Or(first, err)
		h.share.Close()
	}
	share.Waits(false)
	return first
}
