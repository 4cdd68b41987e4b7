// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestGroupOtherLabel: keys take turns in the order they were asked for, and
// waiting callers leave when they must.
func TestGroupOtherLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: 10 * time.Second}
		g := s.group()
		var all sync.WaitGroup
		ask := func(key string, after, ends time.Duration) {
			all.Go(func() {
				time.Sleep(after)
				begin := time.Now().Add(-after)
				done(t, g, root, key)
				if took := time.Since(begin); took != ends {
					t.Errorf("%s, asked after %v: had after %v, not %v", key, after, took, ends)
				}
			})
		}
		ask(keyA, 0, 10*time.Second)
		ask(keyB, 1*time.Second, 20*time.Second)
		ask(keyA, 2*time.Second, 10*time.Second) // joins the one that runs
		ask(keyA, 12*time.Second, 30*time.Second)
		ask(keyB, 13*time.Second, 20*time.Second) // likewise
		ask(keyB, 22*time.Second, 40*time.Second) // its result is none any more
		time.Sleep(4 * time.Second)
		p := pending(t, g, root, keyB, 2*time.Second)
		if p.After == nil || *p.After != keyA || time.Since(p.Since) != 5*time.Second || p.Callers != 1 {
			t.Errorf("%+v", p)
		}
		if p := g.Works(); len(p) != 2 || p[0].Key != keyA || p[0].Callers != 2 || p[0].Data.seen.Load() != 6000 || p[1].Key != keyB {
			t.Errorf("%+v", p)
		}
		all.Wait()
		s.ran(t, keyA, keyB, keyA, keyB)
		empty(t, g)
	})
}

// TestGroupTurn: a place in the queue is kept as long as work lingers.
func TestGroupTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: 5 * time.Minute}
		g := s.group()
		pending(t, g, root, keyA, time.Second)
		pending(t, g, root, keyB, time.Second)
		time.Sleep(119 * time.Second) // A is cancelled, B begins
		p := pending(t, g, root, keyB, 2*time.Second)
		if p.After != nil || len(s.halted) != 1 || time.Since(p.Since) != 2*time.Second {
			t.Errorf("%+v; cancelled: %v", p, s.halted)
		}
		time.Sleep(time.Second)
		pending(t, g, root, keyA, time.Second) // and A gives its place up
		done(t, g, root, keyB)
		time.Sleep(time.Second)
		s.ran(t, keyA, keyB)
		empty(t, g)
		s.ran(t, keyA, keyB)
	})
}

// TestGroupFresh: a success is no answer to those who ask later, for there may be a stray
// since. One who left has it done again.
func TestGroupFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: time.Second}
		g := s.group()
		done(t, g, root, keyA)
		done(t, g, root, keyA)
		s.takes = 4 * time.Second
		pending(t, g, root, keyA, time.Second)
		done(t, g, root, keyA) // joins it
		pending(t, g, root, keyA, time.Second)
		time.Sleep(time.Minute)
		done(t, g, root, keyA)
		done(t, g, root, keyA)
		s.ran(t, keyA, keyA, keyA, keyA, keyA+again, keyA)
		empty(t, g)
	})
}

// TestGroupLeftInQueue: what nobody waits for does not begin, but keeps its place for a
// while.
func TestGroupLeftInQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: 10 * time.Second}
		g := s.group()
		pending(t, g, root, keyA, time.Second)
		pending(t, g, root, keyB, time.Second)
		done(t, g, root, keyA)
		time.Sleep(10 * time.Second)
		s.ran(t, keyA)
		if p := g.Works(); len(p) != 1 || p[0].Key != keyB || !p[0].Since.Equal(time.Now().Add(-19*time.Second)) {
			t.Errorf("%+v", p)
		}
		done(t, g, root, keyB)
		s.ran(t, keyA, keyB)
		empty(t, g)
	})
}

// TestGroupFailure: a failure is told to those who wait or, if there are none, to
// one who comes back. All others have it tried again.
func TestGroupFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		oops := errors.New("oops")
		s := &slow{takes: 5 * time.Second, fails: oops}
		g := s.group()
		fails := func(after time.Duration) {
			t.Helper()
			begin := time.Now()
			v, err := request(t, g, root, keyA, time.Hour)
			if !errors.Is(err, oops) || v.Data.seen.Load() != 5000 || time.Since(begin) != after {
				t.Errorf("after %v: %+v, %v", time.Since(begin), v, err)
			}
		}
		pending(t, g, root, keyA, time.Second)
		fails(4 * time.Second)
		fails(5 * time.Second) // all that waited were told
		pending(t, g, root, keyA, time.Second)
		time.Sleep(time.Minute)
		g.mu.Lock()
		ended := g.works[0]
		g.mu.Unlock()
		fails(0)
		if v := g.leave(ended); !v.Ended { // a caller who was about to leave when it ended gets it, too
			t.Errorf("%+v", v)
		}
		fails(5 * time.Second) // once
		pending(t, g, root, keyA, time.Second)
		time.Sleep(3 * time.Minute)
		fails(5 * time.Second) // too late
		s.fails = nil
		done(t, g, root, keyA)
		s.ran(t, keyA, keyA, keyA, keyA, keyA, keyA, keyA)
		empty(t, g)
	})
}

// TestGroupDeadStorage: callers leave while not even the root can be looked at,
// and however many come back, one call waits.
func TestGroupDeadStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: time.Second}
		g := s.group()
		back, looks := make(chan bool), atomic.Int64{}
		g.At = func(root string) (string, error) {
			looks.Add(1)
			<-back
			time.Sleep(time.Second)
			return s.at(root)
		}
		for range 10 {
			cause := errors.New("enough")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, cause)
			_, err := g.Do(ctx, root, keyA)
			cancel()
			if !errors.Is(err, errHangs) || !strings.Contains(err.Error(), root) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, cause) {
				t.Errorf("%v", err)
			}
			if _, err := g.Do(ctx, root, keyA); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errHangs) {
				t.Errorf("after the end: %v", err)
			}
		}
		if n := looks.Load(); n != 1 {
			t.Errorf("%d calls hang", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Stop(ctx, root, errStopped); !errors.Is(err, errHangs) {
			t.Error(err)
		}
		if err := g.Stop(ctx, root, errStopped); err != context.DeadlineExceeded { // and nothing else
			t.Error(err)
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { done(t, g, root, keyA) })
		}
		synctest.Wait()
		close(back)
		all.Wait()
		if n := looks.Load(); n != 2 {
			t.Errorf("%d looks, where one for the dead and one for all others do", n)
		}
		s.ran(t, keyA)
		empty(t, g)
	})
}

// TestGroupLooksAfterwards: a caller who arrives during a look is not given
// what it saw, for another directory may have had the path by then.
func TestGroupLooksAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: time.Minute}
		g := s.group()
		g.At = func(root string) (string, error) {
			id, err := s.at(root)
			time.Sleep(2 * time.Second)
			return id, err
		}
		var all sync.WaitGroup
		all.Go(func() { done(t, g, root, keyA) })
		time.Sleep(time.Second)
		s.lies(root, "/another")
		all.Go(func() { done(t, g, root, keyA) })
		time.Sleep(10 * time.Second)
		if p := g.Works(); len(p) != 2 || p[0].Callers != 1 || p[1].Callers != 1 {
			t.Errorf("%+v", p)
		}
		all.Wait()
		empty(t, g)
	})
}

// TestGroupStorm has callers of three keys in three places come and go at
// random times. A caller who is served is served by a run that ended since, or that
// was the last of its place.
func TestGroupStorm(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			s := &slow{takes: 7 * time.Second}
			g := s.group()
			g.Linger = 3 * time.Second
			var all sync.WaitGroup
			for range 200 {
				root, key := fmt.Sprintf("/%d", rng.IntN(3)), fmt.Sprintf("key %d", rng.IntN(3))
				wait, limit := time.Duration(rng.IntN(200_000))*time.Millisecond, time.Duration(rng.IntN(9_000))*time.Millisecond
				again := rng.IntN(4)
				all.Go(func() {
					time.Sleep(wait)
					for range again {
						asked := time.Now()
						switch v, err := request(t, g, root, key, limit); {
						case err == nil && (!v.Ended || v.Key != key || v.ID != root):
							t.Errorf("%+v", v)
						case err == nil:
							s.vouches(t, v.Data.run, asked)
						case !errors.Is(err, context.DeadlineExceeded):
							t.Error(err) // nobody is told that others stopped it
						}
					}
				})
			}
			all.Wait()
			empty(t, g)
			if s.twice || len(s.runs) < 10 {
				t.Errorf("seed %d: two runs in one place: %t; %d runs, %d cancelled", seed, s.twice, len(s.runs), len(s.halted))
			}
		})
	}
}

// vouches checks that run n is an answer to a caller who asked then.
func (s *slow) vouches(t *testing.T, n int, asked time.Time) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.spans[n].end.Before(asked) {
		return
	}
	for _, later := range s.spans[n+1:] {
		if later.id == s.spans[n].id && later.begin.Before(asked) {
			t.Errorf("run %d, %q, had ended, and another had begun", n, s.runs[n])
		}
	}
}
