// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestQueue: a thousand callers have their turns in the order in which they came. Who
// leaves wakes one, and no clock any.
func TestQueue(t *testing.T) {
	const callers = 1000
	v := volume{1, 2}
	synctest.Test(t, func(t *testing.T) {
		var q queue
		enter := entering(&q)
		if err := errors.Join(enter(t.Context(), v, nil), enter(t.Context(), volume{1, 3}, nil)); err != nil {
			t.Fatal(err)
		}
		q.holds(v, "holder")
		var turns []int
		var told atomic.Int64
		for i := range callers {
			go func() {
				if err := enter(t.Context(), v, func(holder string) {
					told.Add(1)
					if holder != "holder" {
						t.Errorf("held by %q", holder)
					}
				}); err != nil {
					t.Error(err)
				}
				turns = append(turns, i)
			}()
			synctest.Wait() // so that they come in this order
		}
		if told.Load() != 0 || len(turns) != 0 {
			t.Errorf("%d were told, %d have a turn", told.Load(), len(turns))
		}
		time.Sleep(time.Hour)
		if told.Load() != callers || len(turns) != 0 {
			t.Errorf("%d were told of %d, %d have a turn", told.Load(), callers, len(turns))
		}
		for i := range callers {
			begin := time.Now()
			q.leave(v)
			synctest.Wait()
			if len(turns) != i+1 || turns[i] != i || !time.Now().Equal(begin) {
				t.Fatalf("%d left: the last turn of %d is %d's", i+1, len(turns), turns[len(turns)-1])
			}
		}
		q.leave(v)
		q.leave(volume{1, 3})
		if len(q.lines) != 0 {
			t.Errorf("%d lines are left", len(q.lines))
		}
	})
}

// entering is q.enter for callers who do nothing in particular.
func entering(q *queue) func(ctx context.Context, v volume, tell func(string)) error {
	return func(ctx context.Context, v volume, tell func(string)) error {
		_, err := q.enter(ctx, v, "", tell)
		return err
	}
}

// TestQueueDid: a caller is told what the one did for whom he waited, and not what was done
// before he came.
func TestQueueDid(t *testing.T) {
	v := volume{1, 2}
	none := func(string) {}
	synctest.Test(t, func(t *testing.T) {
		var q queue
		var all []string
		enter := func(ctx context.Context, does string) {
			did, err := q.enter(ctx, v, does, none)
			if err != nil {
				did = err.Error()
			}
			all = append(all, does+" after "+did)
		}
		enter(t.Context(), "a")
		go enter(t.Context(), "a2")
		synctest.Wait()
		go enter(t.Context(), "b")
		synctest.Wait()
		q.leave(v)
		synctest.Wait()
		q.leave(v)
		synctest.Wait()
		// One whose turn has come, and who goes without: c may have come after b had left.
		gone := q.join(v, "gone")
		go enter(t.Context(), "c")
		synctest.Wait()
		q.leave(v)
		q.quit(v, gone)
		synctest.Wait()
		if want := "a after ,a2 after a,b after a2,c after "; strings.Join(all, ",") != want {
			t.Errorf("%q, want %q", strings.Join(all, ","), want)
		}
	})
}

// TestQueueQuits: who gives up, or panics when it is told, or gives up just when its turn
// comes, holds up nobody.
func TestQueueQuits(t *testing.T) {
	v := volume{1, 2}
	none := func(string) {}
	synctest.Test(t, func(t *testing.T) {
		var q queue
		enter := entering(&q)
		if err := enter(t.Context(), v, none); err != nil {
			t.Fatal(err)
		}
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		var gone atomic.Int64
		turns := 0
		go func() {
			defer func() {
				if recover() != nil {
					gone.Add(1)
				}
			}()
			t.Error(enter(t.Context(), v, func(string) { panic("told") }))
		}()
		for range 10 {
			go func() {
				if err := enter(ctx, v, none); errors.Is(err, why) {
					gone.Add(1)
				}
			}()
			go func() {
				if err := enter(t.Context(), v, none); err == nil {
					turns++
					q.leave(v)
				}
			}()
		}
		time.Sleep(time.Second)
		cancel(why)
		synctest.Wait()
		if gone.Load() != 11 || turns != 0 {
			t.Errorf("%d have gone of 11, %d had a turn", gone.Load(), turns)
		}
		q.leave(v)
		synctest.Wait()
		if turns != 10 || len(q.lines) != 0 {
			t.Errorf("%d had a turn of 10", turns)
		}
		// The turn and the end of the context at once: select takes either.
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			if err := enter(ctx, v, none); err != nil {
				t.Fatal(err)
			}
			go func() {
				if enter(ctx, v, none) == nil {
					q.leave(v)
				}
			}()
			synctest.Wait()
			cancel()
			q.leave(v)
			synctest.Wait()
			if len(q.lines) != 0 {
				t.Fatal("a turn is lost")
			}
		}
	})
}

// TestLockQueue: callers of one process have a volume's lock one after the other, and no
// time passes between them.
func TestLockQueue(t *testing.T) {
	treetest.Need(t, "root")
	root := sys.Stat{Dev: ^uint64(2), Ino: uint64(os.Getpid())}
	synctest.Test(t, func(t *testing.T) {
		first, err := TakeLock(t.Context(), root, "test", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		within, had := 0, 0
		for range 30 {
			go func() {
				l, err := TakeLock(t.Context(), root, "test", "", nil)
				if err != nil {
					t.Error(err)
					return
				}
				if within++; within > 1 {
					t.Errorf("%d have the lock", within)
				}
				had++
				within--
				l.Release()
			}()
		}
		synctest.Wait()
		if had != 0 {
			t.Errorf("%d had the lock beside its holder", had)
		}
		begin := time.Now()
		first.Release()
		synctest.Wait()
		if had != 30 || !time.Now().Equal(begin) {
			t.Errorf("%d had the lock after %v", had, time.Since(begin))
		}
	})
}
