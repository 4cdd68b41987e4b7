// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
// that times are exact, and it ends only when all goroutines have. Trees are
// slow by that clock; group_linux_test.go has real ones.

const (
	labelA = "u:r:t:s0:c1"
	labelB = "u:r:t:s0:c2"
)

// slow plays Tree: each run takes some seconds by the clock, sees 1,000 entries
// in the middle of each, and gives its volume the label.
type slow struct {
	takes time.Duration
	fails error

	mu     sync.Mutex
	runs   []string // labels, in the order they began
	spans  []span
	under  map[string]int    // by root: how many run
	label  map[string]string // by root
	halted []time.Duration   // how long those ran that were cancelled
	twice  bool              // two ran on one volume
}

type span struct {
	root       string
	begin, end time.Time
}

func (s *slow) group() *Group {
	s.under, s.label = map[string]int{}, map[string]string{}
	return &Group{calls: calls{tree: s.tree, labelled: s.labelled}}
}

func (s *slow) tree(ctx context.Context, root, label string, o Options) (Report, error) {
	s.mu.Lock()
	n := len(s.runs)
	s.runs = append(s.runs, label)
	s.spans = append(s.spans, span{root: root, begin: time.Now()})
	s.under[root]++
	s.twice = s.twice || s.under[root] > 1
	s.label[root] = "sealed"
	fails := s.fails
	s.mu.Unlock()
	begin := time.Now()
	var seen atomic.Int64
	begins(o.Progress, func() State { return State{Seen: seen.Load()} })
	for i := 1; time.Since(begin) < s.takes && ctx.Err() == nil; i++ {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second / 2):
			seen.Add(int64(i % 2 * 1000))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under[root]--
	s.spans[n].end = time.Now()
	r := Report{Root: root, Label: label, Seen: seen.Load(), Written: int64(n), Notes: []string{"a note"}}
	if ctx.Err() != nil {
		s.halted = append(s.halted, time.Since(begin))
		return r, context.Cause(ctx)
	}
	if fails != nil {
		return r, fails
	}
	s.label[root] = label
	r.Complete = true
	return r, nil
}

func (s *slow) labelled(root, label string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.label[root] == label, nil
}

// ran compares the runs there were with those there should have been.
func (s *slow) ran(t *testing.T, labels ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.runs, labels) || s.twice {
		t.Errorf("ran %q, two at a time: %t; want %q", s.runs, s.twice, labels)
	}
}

// request asks g within limit, and checks that it is answered by then.
func request(t *testing.T, g *Group, root, label string, limit time.Duration) (Report, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	begin := time.Now()
	r, err := g.Tree(ctx, root, label, TrustNothing)
	if took := time.Since(begin); took > limit {
		t.Errorf("%s: answered after %v, not %v", label, took, limit)
	}
	return r, err
}

// pending asks g in vain, and returns the answer.
func pending(t *testing.T, g *Group, root, label string, limit time.Duration) PendingError {
	t.Helper()
	_, err := request(t, g, root, label, limit)
	var p *PendingError
	if !errors.As(err, &p) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%s: %v; not pending", label, err)
	}
	return *p
}

// done asks g and is to get a success.
func done(t *testing.T, g *Group, root, label string) Report {
	t.Helper()
	r, err := request(t, g, root, label, time.Hour)
	if err != nil || !r.Complete || r.Label != label || r.Root != root {
		t.Fatalf("%+v, %v", r, err)
	}
	return r
}

// empty waits for g to forget all, and looks for goroutines of it.
func empty(t *testing.T, g *Group) {
	t.Helper()
	time.Sleep(time.Hour)
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.volumes)+len(g.looks)+len(g.arrivals) > 0 {
		t.Errorf("kept for ever: %d volumes, %d looks", len(g.volumes), len(g.looks))
	}
	goroutineless(t)
}

func goroutineless(t *testing.T) {
	t.Helper()
	buf := make([]byte, 1<<20)
	if s := string(buf[:runtime.Stack(buf, true)]); strings.Contains(s, "(*Group)") {
		t.Errorf("goroutines are left:\n%s", s)
	}
}

// TestGroupKubelet plays the kubelet of "name is reserved" and twenty minutes
// of retries: its requests end after 2 s (of 2 min), the volume takes 7 s.
func TestGroupKubelet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := &slow{takes: 7 * time.Second}, t.TempDir()
		g := s.group()
		begin := time.Now()
		var told []string
		for {
			asked := time.Now()
			r, err := request(t, g, root, labelA, 2*time.Second)
			if err == nil {
				if !r.Complete || r.Seen != 7000 || time.Since(begin) != 7*time.Second {
					t.Errorf("after %v: %+v", time.Since(begin), r)
				}
				break
			}
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(asked) != 2*time.Second {
				t.Fatalf("answered after %v: %v", time.Since(asked), err)
			}
			told = append(told, strings.TrimPrefix(err.Error(), fmt.Sprintf("%q: ", root)))
			time.Sleep(time.Second)
		}
		if !slices.Equal(told, []string{
			"relabelling goes on: 2,000 entries after 2s; ask again within 2m0s",
			"relabelling goes on: 5,000 entries after 5s; ask again within 2m0s",
		}) {
			t.Errorf("told %q", told)
		}
		s.ran(t, labelA)
		synctest.Wait()
		goroutineless(t)
		empty(t, g)
	})
}

// TestGroupBetweenRequests: the work ends while nobody asks. Who comes back gets
// its result, at once.
func TestGroupBetweenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := &slow{takes: 7 * time.Second}, t.TempDir()
		g := s.group()
		pending(t, g, root, labelA, 2*time.Second)
		time.Sleep(time.Minute)
		g.mu.Lock()
		kept := g.volumes[0].kept
		g.mu.Unlock()
		begin := time.Now()
		if r := done(t, g, root, labelA); time.Since(begin) != 0 || r.Seen != 7000 {
			t.Errorf("after %v: %+v", time.Since(begin), r)
		}
		s.ran(t, labelA)
		// Who was about to leave when it ended gets it, too.
		if p := g.leave(kept); p != nil {
			t.Error(p)
		}
		empty(t, g)
	})
}

// TestGroupThousand: callers by several spellings and paths, one walk.
func TestGroupThousand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := &slow{takes: 3 * time.Second}, t.TempDir()
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(root, link); err != nil {
			t.Fatal(err)
		}
		g := s.group()
		var all sync.WaitGroup
		var left, served atomic.Int64
		for i := range 1000 {
			all.Go(func() {
				path := []string{root, root + "/", link + "/."}[i%3]
				label := []string{"u:r:t:s0:c1,c1", labelA}[i%2]
				limit := time.Hour
				if i%5 == 0 {
					limit = time.Second
				}
				r, err := request(t, g, path, label, limit)
				switch {
				case limit == time.Second && errors.Is(err, context.DeadlineExceeded):
					left.Add(1)
				case err == nil && r.Complete && r.Label == labelA && r.Root == path:
					r.Notes[0] = path // its own
					served.Add(1)
				default:
					t.Errorf("%+v, %v", r, err)
				}
			})
		}
		synctest.Wait()
		if p := g.Work(); len(p) != 1 || p[0].Callers != 1000 {
			t.Errorf("%+v", p)
		}
		all.Wait()
		if left.Load() != 200 || served.Load() != 800 {
			t.Errorf("%d left, %d were served", left.Load(), served.Load())
		}
		s.ran(t, labelA)
		empty(t, g)
	})
}

// TestGroupLinger: work that nobody waits for ends, but not before its time, and
// not if somebody comes back.
func TestGroupLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := &slow{takes: time.Hour}, t.TempDir()
		g := s.group()
		pending(t, g, root, labelA, time.Second)
		time.Sleep(2*time.Minute - time.Second)
		// Just in time, and for so short that the first absence would end soon.
		pending(t, g, root, labelA, time.Second/2)
		time.Sleep(2*time.Minute - time.Second)
		s.mu.Lock()
		early := len(s.halted)
		s.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if early != 0 || len(s.halted) != 1 || s.halted[0] != 2*2*time.Minute+time.Second/2 {
			t.Errorf("%d ended early; ran for %v", early, s.halted)
		}
		if p := g.Work(); len(p) != 0 {
			t.Errorf("%+v", p)
		}
		// What was cancelled is no result: the next caller has it done.
		s.takes = time.Second
		done(t, g, root, labelA)
		s.ran(t, labelA, labelA)
		empty(t, g)

		g.Linger = -1
		s.takes = time.Hour
		if p := pending(t, g, t.TempDir(), labelA, time.Second); p.Within != 0 || !strings.HasSuffix(p.Error(), "ask again") {
			t.Error(p.Error())
		}
		time.Sleep(2 * time.Hour)
		if len(s.halted) != 1 {
			t.Errorf("cancelled after %v", s.halted)
		}
		empty(t, g)
	})
}

// TestGroupJoinsNoneThatStops: who comes while a run is being cancelled waits
// for a new one, which does not begin before the old one has ended.
func TestGroupJoinsNoneThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := &slow{takes: time.Minute}, t.TempDir()
		g := s.group()
		g.Linger = time.Second
		g.calls.tree = func(ctx context.Context, root, label string, o Options) (Report, error) {
			defer func() {
				if ctx.Err() != nil {
					time.Sleep(time.Second) // as long as a worker may take
				}
			}()
			return s.tree(ctx, root, label, o)
		}
		pending(t, g, root, labelA, time.Second)
		time.Sleep(1500 * time.Millisecond)
		begin := time.Now()
		done(t, g, root, labelA)
		if took := time.Since(begin); took != time.Minute+time.Second/2 {
			t.Errorf("took %v", took)
		}
		s.ran(t, labelA, labelA)
		empty(t, g)
	})
}
