// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// These tests run in a synctest bubble: its clock moves only when all wait, so
// that times are exact, and it ends only when all goroutines have. relabel's have
// real trees.

const (
	root  = "/v"
	keyA  = "A"
	again = " again" // a run after a success that nobody was told of
	keyB  = "B"

	asLong = 2 * time.Minute
)

type (
	group = Group[string, string, data]
	work  = Work[string, string, data]
	view  = View[string, string, data]
)

// data is what a run of slow makes known.
type data struct {
	seen atomic.Int64
	run  int // its number
}

var errStopped, errHangs = errors.New("stopped"), errors.New("hangs")

// slow plays a relabel: each run takes some seconds by the clock, sees 1,000 entries
// in the middle of each, and gives its place the label that is its key.
type slow struct {
	takes time.Duration
	fails error

	mu     sync.Mutex
	ids    map[string]string // by root, which is its own id else
	runs   []string          // keys, in the order they began, with again
	spans  []span
	under  map[string]int    // by place: how many run
	label  map[string]string // by place
	halted []time.Duration   // how long those ran that were cancelled
	twice  bool              // two ran in one place
}

type span struct {
	id         string
	begin, end time.Time
}

func (s *slow) group() *group {
	s.ids, s.under, s.label = map[string]string{}, map[string]int{}, map[string]string{}
	return &group{
		At: s.at, Run: s.run, Linger: asLong,
		Hung: func(root string, run, cause error) error { return errors.Join(errHangs, errors.New(root), run, cause) },
	}
}

func (s *slow) at(root, key string) (string, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, is := s.ids[root]; is {
		return id, key, nil
	}
	return root, key, nil
}

// lies has root be the place named so.
func (s *slow) lies(root, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[root] = id
}

func (s *slow) run(ctx context.Context, w *work) error {
	defer w.Released()
	s.mu.Lock()
	w.Data.run = len(s.runs)
	key := w.Key
	if w.Again {
		key += again
	}
	s.runs = append(s.runs, key)
	s.spans = append(s.spans, span{id: w.ID, begin: time.Now()})
	s.under[w.ID]++
	s.twice = s.twice || s.under[w.ID] > 1
	s.label[w.ID] = "sealed"
	fails := s.fails
	s.mu.Unlock()
	begin := time.Now()
	for i := 1; time.Since(begin) < s.takes && ctx.Err() == nil; i++ {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second / 2):
			w.Data.seen.Add(int64(i % 2 * 1000))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under[w.ID]--
	s.spans[w.Data.run].end = time.Now()
	if ctx.Err() != nil {
		s.halted = append(s.halted, time.Since(begin))
		return context.Cause(ctx)
	}
	if fails == nil {
		s.label[w.ID] = w.Key
	}
	return fails
}

// ran compares the runs there were with those there should have been.
func (s *slow) ran(t *testing.T, keys ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.runs, keys) || s.twice {
		t.Errorf("ran %q, two at a time: %t; want %q", s.runs, s.twice, keys)
	}
}

// request asks g within limit, and checks that it is answered by then.
func request(t *testing.T, g *group, root, key string, limit time.Duration) (view, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	begin := time.Now()
	v, err := g.Do(ctx, root, key)
	if took := time.Since(begin); took > limit {
		t.Errorf("%s: answered after %v, not %v", key, took, limit)
	}
	return v, err
}

// pending asks g in vain, and returns the answer.
func pending(t *testing.T, g *group, root, key string, limit time.Duration) view {
	t.Helper()
	v, err := request(t, g, root, key, limit)
	if v.Work == nil || v.Ended || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%s: %+v, %v; not pending", key, v, err)
	}
	return v
}

// done asks g and is to get a success.
func done(t *testing.T, g *group, root, key string) view {
	t.Helper()
	v, err := request(t, g, root, key, time.Hour)
	if err != nil || !v.Ended || v.Key != key {
		t.Fatalf("%+v, %v", v, err)
	}
	return v
}

// empty waits for g to forget all, and looks for goroutines of it.
func empty(t *testing.T, g *group) {
	t.Helper()
	time.Sleep(time.Hour)
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.works)+len(g.looks) > 0 {
		t.Errorf("kept for ever: %d works, %d looks", len(g.works), len(g.looks))
	}
	goroutineless(t)
}

func goroutineless(t *testing.T) {
	t.Helper()
	buf := make([]byte, 1<<20)
	if s := string(buf[:runtime.Stack(buf, true)]); strings.Contains(s, "(*Group") {
		t.Errorf("goroutines are left:\n%s", s)
	}
}

// play calls f in a bubble, with runs that take so long, and looks that nothing is left.
func play(t *testing.T, takes time.Duration, f func(t *testing.T, s *slow, g *group)) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: takes}
		g := s.group()
		f(t, s, g)
		empty(t, g)
	})
}

// TestGroupKubelet plays the kubelet of "name is reserved" and twenty minutes
// of retries: its requests end after 2 s (of 2 min), the volume takes 7 s.
func TestGroupKubelet(t *testing.T) {
	play(t, 7*time.Second, func(t *testing.T, s *slow, g *group) {
		begin := time.Now()
		var told []int64
		for {
			asked := time.Now()
			v, err := request(t, g, root, keyA, 2*time.Second)
			if err == nil {
				if v.Data.seen.Load() != 7000 || time.Since(begin) != 7*time.Second {
					t.Errorf("after %v: %+v", time.Since(begin), v)
				}
				break
			}
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(asked) != 2*time.Second {
				t.Fatalf("answered after %v: %v", time.Since(asked), err)
			}
			if told = append(told, v.Data.seen.Load()); v.Since != begin || v.Callers != 0 || v.After != nil {
				t.Errorf("%+v", v)
			}
			time.Sleep(time.Second)
		}
		if !slices.Equal(told, []int64{2000, 5000}) {
			t.Errorf("told %d", told)
		}
		s.ran(t, keyA)
		synctest.Wait()
		goroutineless(t)
	})
}

// TestGroupLinger: work that nobody waits for ends, but not before its time, and
// not if a caller comes back.
func TestGroupLinger(t *testing.T) {
	play(t, time.Hour, func(t *testing.T, s *slow, g *group) {
		pending(t, g, root, keyA, time.Second)
		time.Sleep(2*time.Minute - time.Second)
		// Just in time, and for so short that the first absence would end soon.
		pending(t, g, root, keyA, time.Second/2)
		time.Sleep(2*time.Minute - time.Second)
		s.mu.Lock()
		early := len(s.halted)
		s.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if early != 0 || len(s.halted) != 1 || s.halted[0] != 2*2*time.Minute+time.Second/2 {
			t.Errorf("%d ended early; ran for %v", early, s.halted)
		}
		if p := g.Works(); len(p) != 0 {
			t.Errorf("%+v", p)
		}
		// What was cancelled is no result: the next caller has it done.
		s.takes = time.Second
		done(t, g, root, keyA)
		s.ran(t, keyA, keyA)
		empty(t, g)
	})
}

// TestGroupJoinsNoneThatStops: a caller who comes while a run is being cancelled waits
// for a new one, which does not begin before the old one has ended.
func TestGroupJoinsNoneThatStops(t *testing.T) {
	play(t, time.Minute, func(t *testing.T, s *slow, g *group) {
		g.Linger = time.Second
		g.Run = func(ctx context.Context, w *work) error {
			defer func() {
				if ctx.Err() != nil {
					time.Sleep(time.Second) // as long as a worker may take
				}
			}()
			return s.run(ctx, w)
		}
		pending(t, g, root, keyA, time.Second)
		time.Sleep(1500 * time.Millisecond)
		begin := time.Now()
		done(t, g, root, keyA)
		if took := time.Since(begin); took != time.Minute+time.Second/2 {
			t.Errorf("took %v", took)
		}
		s.ran(t, keyA, keyA)
	})
}

// TestGroupStopArrival: a caller who has arrived before a stop begins no work after
// it, though the root is looked at then as well. Which of the two the caller sees
// first is up to chance.
func TestGroupStopArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			s := &slow{}
			g := s.group()
			g.At = func(root, key string) (string, string, error) {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.halt(errStopped, func(at string) bool { return at == root })
				return root, key, nil
			}
			if _, err := g.Do(t.Context(), root, keyA); !errors.Is(err, errStopped) {
				t.Errorf("after a stop: %v", err)
			}
			s.ran(t)
			empty(t, g)
		}
	})
}

// TestGroupStopHeld: Stop returns when the run holds nothing any more, or says what it
// still holds; all callers are told when the run has returned, also where Stop may not wait.
func TestGroupStopHeld(t *testing.T) {
	play(t, time.Hour, func(t *testing.T, s *slow, g *group) {
		release := func() {}
		g.Run = func(ctx context.Context, w *work) error {
			release, w.Released = w.Released, func() {}
			return s.run(ctx, w)
		}
		var told sync.WaitGroup
		for _, key := range []string{keyA, keyA, keyB} {
			told.Go(func() {
				if _, err := request(t, g, root, key, time.Hour); !errors.Is(err, errStopped) {
					t.Errorf("%s: %v", key, err)
				}
			})
			time.Sleep(time.Second)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.Stop(gone, root, errStopped); err != context.Canceled { // and nothing else
			t.Error(err)
		}
		told.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := g.Stop(ctx, root, errStopped); !errors.Is(err, errHangs) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if all := g.Works(); len(all) != 0 {
			t.Errorf("%+v", all)
		}
		time.AfterFunc(time.Minute, release)
		begin := time.Now()
		if err := g.Shutdown(ctx, errStopped); !errors.Is(err, errStopped) {
			t.Error(err)
		}
		s.lies("/another name", root)
		if err := g.Stop(t.Context(), "/another name", errStopped); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if _, err := g.Do(t.Context(), root, keyA); !errors.Is(err, errStopped) {
			t.Error(err)
		}
		s.ran(t, keyA)
	})
}

// TestGroupOtherLabel: keys take turns in the order they were asked for, and
// waiting callers leave when they must.
func TestGroupOtherLabel(t *testing.T) {
	play(t, 10*time.Second, func(t *testing.T, s *slow, g *group) {
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
	})
}

// TestGroupFresh: a success is no answer to those who ask later, for there may be a stray
// since. One who left has it done again.
func TestGroupFresh(t *testing.T) {
	play(t, time.Second, func(t *testing.T, s *slow, g *group) {
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
	})
}

// TestGroupLeftInQueue: what nobody waits for does not begin, but keeps its place for a
// while.
func TestGroupLeftInQueue(t *testing.T) {
	play(t, 10*time.Second, func(t *testing.T, s *slow, g *group) {
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
	})
}

// TestGroupFailure: a failure is told to those who wait or, if there are none, to
// one who comes back. All others have it tried again.
func TestGroupFailure(t *testing.T) {
	play(t, 5*time.Second, func(t *testing.T, s *slow, g *group) {
		oops := errors.New("oops")
		s.fails = oops
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
	})
}

// TestGroupDeadStorage: callers leave while not even the root can be looked at, and those
// who wait have one run when it can.
func TestGroupDeadStorage(t *testing.T) {
	play(t, time.Second, func(t *testing.T, s *slow, g *group) {
		back := make(chan bool)
		g.At = func(root, key string) (string, string, error) {
			<-back
			time.Sleep(time.Second)
			return s.at(root, key)
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
		s.ran(t, keyA)
	})
}

// TestGroupLooksAfterwards: a caller who arrives during a look is not given
// what it saw, for another directory may have had the path by then.
func TestGroupLooksAfterwards(t *testing.T) {
	play(t, time.Minute, func(t *testing.T, s *slow, g *group) {
		g.At = func(root, key string) (string, string, error) {
			id, key, err := s.at(root, key)
			time.Sleep(2 * time.Second)
			return id, key, err
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
	})
}

// TestGroupStorm has callers of three keys in three places come and go at
// random times, in half of the storms while places are stopped. A caller who is served is served by a run that ended since, or that
// was the last of its place.
func TestGroupStorm(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			s, stops := &slow{takes: 7 * time.Second}, seed%2 == 1
			g := s.group()
			g.Linger = 3 * time.Second
			var all sync.WaitGroup
			for range 200 {
				root, key := fmt.Sprintf("/%d", rng.IntN(3)), fmt.Sprintf("key %d", rng.IntN(3))
				wait, limit := time.Duration(rng.IntN(200_000))*time.Millisecond, time.Duration(rng.IntN(9_000))*time.Millisecond
				again := rng.IntN(4)
				all.Go(func() {
					time.Sleep(wait)
					if stops && again == 0 {
						if err := g.Stop(t.Context(), root, errStopped); err != nil {
							t.Error(err)
						}
					}
					for range again {
						asked := time.Now()
						switch v, err := request(t, g, root, key, limit); {
						case err == nil && (!v.Ended || v.Key != key || v.ID != root):
							t.Errorf("%+v", v)
						case err == nil:
							s.answers(t, v.Data.run, asked)
						case stops && errors.Is(err, errStopped):
						case !errors.Is(err, context.DeadlineExceeded):
							t.Error(err) // nobody is told that others stopped it, but by Stop
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

// answers checks that run n is an answer to a caller who asked then.
func (s *slow) answers(t *testing.T, n int, asked time.Time) {
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
