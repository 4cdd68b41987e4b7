// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"cmp"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
)

// InTurn has do done so many times, each by a task of its own that has the share of main
// for that long, one after the other; but none waits for one that hangs: the next gets what
// enter gives. It returns when all have ended, after the first error.
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
