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

func enters(t *testing.T, b *Budget) *Share {
	t.Helper()
	s, err := b.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// workers takes all workers that s can have.
func workers(s *Share) (n int) {
	for s.Worker(false) {
		n++
	}
	return n
}

// waits begins a wait for a share, and says where it comes.
func waits(ctx context.Context, b *Budget) chan *Share {
	got := make(chan *Share, 1)
	go func() {
		s, _ := b.Enter(ctx)
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
		a := enters(t, b)
		tried := 0
		for a.Alone() && a.Worker(true) {
			tried++
		}
		if b.has(t, 8, 0, RunFiles+8*2*PerWorker); tried != 7 {
			t.Errorf("it tried %d more", tried)
		}
		c := enters(t, b)
		if a.Alone() || c.Worker(true) {
			t.Error("a second run is there")
		}
		c.Close()
		if !a.Alone() || a.Worker(true) || workers(a) != 2 {
			t.Error("the second run has left, and the rest is for those who ask for it")
		}
	})
}

// TestBudget: what a run takes beyond one worker, when it is alone, when others are
// there, and when others wait.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(8, func() int { return 4*least - 6 })
		a := enters(t, b)
		if n := workers(a); n != 7 {
			t.Errorf("alone, it got %d", n)
		}
		c := waits(t.Context(), b)
		none(t, c)
		if s := a.SetHung(0); s != 8 {
			t.Errorf("%d work", s)
		}
		a.Put()
		d := <-c
		b.has(t, 8, 0, RunFiles+8*2*PerWorker+least)
		if d.Worker(false) {
			t.Error("it got one more")
		}
		a.Shrink()
		if n := workers(d); n != 2 {
			t.Errorf("of half of eight it got %d more", n)
		}
		if n := d.Descriptors(100); n != 18 {
			t.Errorf("of 36 descriptors that are left it got %d", n)
		}
		d.Put()
		e := waits(t.Context(), b)
		none(t, e)
		if a.Worker(false) || a.Descriptors(1) > 0 { // though there are some
			t.Error("somebody waits, and another takes more")
		}
		d.Trim(2*least - 5 - 2*PerWorker)
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

// TestBudgetFiles: no worker begins in place of one that hangs, or is late on a busy machine, where
// there are no descriptors for it.
func TestBudgetFiles(t *testing.T) {
	b := New(100, func() int { return RunFiles + 3*2*PerWorker })
	a := enters(t, b)
	a.SetHung(1)
	if n := workers(a); n != 2 {
		t.Errorf("with descriptors for three it got %d more", n)
	}
}

// TestBudgetHung: calls that hang keep no run from beginning, until very many do.
func TestBudgetHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(2, func() int { return 1 << 20 })
		var hung []*Share
		for range manyHung * 2 {
			s := enters(t, b)
			hung = append(hung, s)
			if len(hung)%2 == 0 {
				s.SetHung(1)
			} else {
				s.Waits(true)
			}
		}
		b.has(t, 0, manyHung*2, manyHung*2*least)
		got := waits(t.Context(), b)
		none(t, got)
		hung[1].SetHung(0) // it has returned, and works
		s := <-got
		b.has(t, 2, manyHung*2-1, (manyHung*2+1)*least)
		s.Close()
		for _, s := range hung {
			s.Close()
		}
		b.has(t, 0, 0, 0)
	})
}

// TestBudgetTurn: shares are given in the order of arrival, and who leaves the queue
// holds nothing up. One share there always is: nothing else would ever help it.
func TestBudgetTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(3, func() int { return least - 1 })
		a := enters(t, b)
		ctx, cancel := context.WithCancelCause(t.Context())
		first, second, third := waits(ctx, b), waits(t.Context(), b), waits(t.Context(), b)
		none(t, first)
		cancel(errors.New("enough"))
		if s := <-first; s != nil {
			t.Error("a share without room")
		}
		none(t, second)
		a.Close()
		s := <-second
		none(t, third)
		s.Close()
		(<-third).Close()
		b.has(t, 0, 0, 0)
	})
}
