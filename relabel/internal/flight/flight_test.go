// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"errors"
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

func (s *slow) at(root string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, is := s.ids[root]; is {
		return id, nil
	}
	return root, nil
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
	if len(g.works)+len(g.looks)+len(g.arrivals) > 0 {
		t.Errorf("kept for ever: %d works, %d looks, %d callers", len(g.works), len(g.looks), len(g.arrivals))
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

// TestGroupKubelet plays the kubelet of "name is reserved" and twenty minutes
// of retries: its requests end after 2 s (of 2 min), the volume takes 7 s.
func TestGroupKubelet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: 7 * time.Second}
		g := s.group()
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
		empty(t, g)
	})
}

// TestGroupThousand: callers by several paths, one run.
func TestGroupThousand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: 3 * time.Second}
		g := s.group()
		s.lies("/link/.", root)
		s.lies(root+"/", root)
		var all sync.WaitGroup
		var left, served atomic.Int64
		for i := range 1000 {
			all.Go(func() {
				path := []string{root, root + "/", "/link/."}[i%3]
				limit := time.Hour
				if i%5 == 0 {
					limit = time.Second
				}
				v, err := request(t, g, path, keyA, limit)
				switch {
				case limit == time.Second && errors.Is(err, context.DeadlineExceeded):
					left.Add(1)
				case err == nil && v.Ended && v.Shared && v.ID == root:
					served.Add(1)
				default:
					t.Errorf("%+v, %v", v, err)
				}
			})
		}
		synctest.Wait()
		if p := g.Works(); len(p) != 1 || p[0].Callers != 1000 {
			t.Errorf("%+v", p)
		}
		all.Wait()
		if left.Load() != 200 || served.Load() != 800 {
			t.Errorf("%d left, %d were served", left.Load(), served.Load())
		}
		s.ran(t, keyA)
		empty(t, g)
	})
}

// TestGroupLinger: work that nobody waits for ends, but not before its time, and
// not if a caller comes back.
func TestGroupLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: time.Hour}
		g := s.group()
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

		g.Linger = -1
		s.takes = time.Hour
		pending(t, g, root, keyA, time.Second)
		time.Sleep(2 * time.Hour)
		if len(s.halted) != 1 {
			t.Errorf("cancelled after %v", s.halted)
		}
		empty(t, g)
	})
}

// TestGroupJoinsNoneThatStops: a caller who comes while a run is being cancelled waits
// for a new one, which does not begin before the old one has ended.
func TestGroupJoinsNoneThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: time.Minute}
		g := s.group()
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
		empty(t, g)
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
			g.At = func(root string) (string, error) {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.halt(errStopped, func(at string) bool { return at == root })
				return root, nil
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
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: time.Hour}
		g := s.group()
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
		empty(t, g)
	})
}
