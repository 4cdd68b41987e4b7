// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// has compares what is handed out with what should be.
func (b *budget) has(t *testing.T, working, hung, open int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.working != working || b.hung != hung || b.open != open {
		t.Errorf("%d work, %d hang, %d open; want %d, %d, %d", b.working, b.hung, b.open, working, hung, open)
	}
}

func enters(t *testing.T, b *budget, files int) *share {
	t.Helper()
	s, err := b.enter(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// waits begins a wait for a share, and says where it comes.
func waits(ctx context.Context, b *budget, files int) chan *share {
	got := make(chan *share, 1)
	go func() {
		s, _ := b.enter(ctx, files)
		got <- s
	}()
	synctest.Wait()
	return got
}

func none(t *testing.T, got chan *share) {
	t.Helper()
	synctest.Wait()
	select {
	case <-got:
		t.Error("a share was given too early")
	default:
	}
}

// TestBudget: what a run takes beyond one worker, when it is alone, when others are
// there, and when others wait.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(8, func() int { return 100 })
		a := enters(t, b, 20)
		if n := a.workers(100); n != 7 {
			t.Errorf("alone, it got %d", n)
		}
		c := waits(t.Context(), b, 20)
		none(t, c)
		if s := a.held(0); s != 8 {
			t.Errorf("%d work", s)
		}
		a.put()
		d := <-c
		b.has(t, 8, 0, 40)
		if n := d.workers(1); n != 0 {
			t.Errorf("it got %d more", n)
		}
		a.shrink()
		if n := d.workers(100); n != 2 {
			t.Errorf("of half of eight it got %d more", n)
		}
		if n := d.descriptors(100); n != 30 {
			t.Errorf("of 60 descriptors that are left it got %d", n)
		}
		d.put()
		e := waits(t.Context(), b, 40)
		none(t, e)
		if a.workers(1)+a.descriptors(1) > 0 { // though there are some
			t.Error("somebody waits, and another takes more")
		}
		d.keep(45, 0)
		none(t, e)
		d.shrink()
		last := <-e
		for _, s := range []*share{a, d, last} {
			s.put()
			s.close()
		}
		b.has(t, 0, 0, 0)
	})
}

// TestBudgetHung: calls that hang keep no run from beginning, until very many do.
func TestBudgetHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(2, func() int { return 1 << 20 })
		var hung []*share
		for range manyHung * 2 {
			s := enters(t, b, 1)
			hung = append(hung, s)
			if len(hung)%2 == 0 {
				s.held(1)
			} else {
				s.waits(true)
			}
		}
		b.has(t, 0, manyHung*2, manyHung*2)
		got := waits(t.Context(), b, 1)
		none(t, got)
		hung[1].held(0) // it has returned, and works
		s := <-got
		b.has(t, 2, manyHung*2-1, manyHung*2+1)
		s.close()
		for _, s := range hung {
			s.close()
		}
		b.has(t, 0, 0, 0)
	})
}

// TestBudgetTurn: shares are given in the order of arrival, and who leaves the queue
// holds nothing up.
func TestBudgetTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(3, func() int { return 10 })
		a := enters(t, b, 5)
		ctx, cancel := context.WithCancelCause(t.Context())
		large, small := waits(ctx, b, 6), waits(t.Context(), b, 5)
		none(t, large)
		none(t, small)
		cancel(errors.New("enough"))
		if s := <-large; s != nil {
			t.Error("a share without room")
		}
		(<-small).close()
		a.close()
		b.has(t, 0, 0, 0)
		alone := enters(t, b, 100) // nothing else would ever help it
		alone.close()
	})
}

// TestBudgetStorm has many come, take, hang and leave.
func TestBudgetStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(4, func() int { return 50 })
		var all sync.WaitGroup
		for i := range 500 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%7)*time.Minute)
				defer cancel()
				s, err := b.enter(ctx, 5+i%9)
				if err != nil {
					return
				}
				defer s.close()
				s.workers(i % 5)
				s.descriptors(i % 11)
				time.Sleep(time.Duration(i%13) * time.Second)
				s.held(i % 3)
				b.mu.Lock()
				if b.working > 4 || b.open > 50 || b.working < 0 || b.hung < 0 {
					t.Errorf("%d work, %d hang, %d open", b.working, b.hung, b.open)
				}
				b.mu.Unlock()
				s.put()
				s.shrink()
			})
		}
		all.Wait()
		b.has(t, 0, 0, 0)
	})
}
