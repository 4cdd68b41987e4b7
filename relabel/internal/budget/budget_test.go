// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// has compares what is handed out with what should be.
func (b *Budget) has(t *testing.T, working, hung, open int) {
	t.Helper()
	if w, h, o := b.Taken(); w != working || h != hung || o != open {
		t.Errorf("%d work, %d hang, %d open; want %d, %d, %d", w, h, o, working, hung, open)
	}
}

func enters(t *testing.T, b *Budget, files int) *Share {
	t.Helper()
	s, err := b.Enter(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// workers takes all workers that s can have.
func workers(s *Share) (n int) {
	for s.Worker() {
		n++
	}
	return n
}

// waits begins a wait for a share, and says where it comes.
func waits(ctx context.Context, b *Budget, files int) chan *Share {
	got := make(chan *Share, 1)
	go func() {
		s, _ := b.Enter(ctx, files)
		got <- s
	}()
	synctest.Wait()
	return got
}

func none(t *testing.T, got chan *Share) {
	t.Helper()
	synctest.Wait()
	select {
	case <-got:
		t.Error("a share was given too early")
	default:
	}
}

// TestMore: a run that tries more workers leaves a fifth of all to one that comes, which
// begins at once.
func TestMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(10, func() int { return 100 })
		a := enters(t, b, 20)
		tried := 0
		for a.Alone() && a.More() {
			tried++
		}
		if b.has(t, 8, 0, 20); tried != 7 {
			t.Errorf("it tried %d more", tried)
		}
		c := enters(t, b, 20)
		if a.Alone() || c.More() {
			t.Error("a second run is there")
		}
		c.Close()
		if !a.Alone() || a.More() || workers(a) != 2 {
			t.Error("the second run has left, and the rest is for those who ask for it")
		}
		var none *Share
		if !none.Alone() || !none.More() || !none.Worker() {
			t.Error("what is outside the budget is bounded")
		}
	})
}

// TestBudget: what a run takes beyond one worker, when it is alone, when others are
// there, and when others wait.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(8, func() int { return 100 })
		a := enters(t, b, 20)
		if n := workers(a); n != 7 {
			t.Errorf("alone, it got %d", n)
		}
		c := waits(t.Context(), b, 20)
		none(t, c)
		if s := a.Held(0); s != 8 {
			t.Errorf("%d work", s)
		}
		a.Put()
		d := <-c
		b.has(t, 8, 0, 40)
		if d.Worker() {
			t.Error("it got one more")
		}
		a.Shrink()
		if n := workers(d); n != 2 {
			t.Errorf("of half of eight it got %d more", n)
		}
		if n := d.Descriptors(100); n != 30 {
			t.Errorf("of 60 descriptors that are left it got %d", n)
		}
		d.Put()
		e := waits(t.Context(), b, 40)
		none(t, e)
		if a.Worker() || a.Descriptors(1) > 0 { // though there are some
			t.Error("somebody waits, and another takes more")
		}
		d.Keep(45 - PerWorker)
		none(t, e)
		d.Shrink()
		last := <-e
		for _, s := range []*Share{a, d, last} {
			s.Put()
			s.Close()
		}
		b.has(t, 0, 0, 0)
	})
}

// TestBudgetHung: calls that hang keep no run from beginning, until very many do.
func TestBudgetHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(2, func() int { return 1 << 20 })
		var hung []*Share
		for range manyHung * 2 {
			s := enters(t, b, 1)
			hung = append(hung, s)
			if len(hung)%2 == 0 {
				s.Held(1)
			} else {
				s.Waits(true)
			}
		}
		b.has(t, 0, manyHung*2, manyHung*2)
		got := waits(t.Context(), b, 1)
		none(t, got)
		hung[1].Held(0) // it has returned, and works
		s := <-got
		b.has(t, 2, manyHung*2-1, manyHung*2+1)
		s.Close()
		for _, s := range hung {
			s.Close()
		}
		b.has(t, 0, 0, 0)
	})
}

// TestBudgetTurn: shares are given in the order of arrival, and who leaves the queue
// holds nothing up.
func TestBudgetTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(3, func() int { return 10 })
		a := enters(t, b, 5)
		ctx, cancel := context.WithCancelCause(t.Context())
		large, small := waits(ctx, b, 6), waits(t.Context(), b, 5)
		none(t, large)
		none(t, small)
		cancel(errors.New("enough"))
		if s := <-large; s != nil {
			t.Error("a share without room")
		}
		(<-small).Close()
		a.Close()
		b.has(t, 0, 0, 0)
		alone := enters(t, b, 100) // nothing else would ever help it
		alone.Close()
	})
}
