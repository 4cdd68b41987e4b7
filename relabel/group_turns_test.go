// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestGroupOtherLabel: labels take turns in the order they were asked for, and
// waiting callers leave when they must.
func TestGroupOtherLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := &slow{takes: 10 * time.Second}, t.TempDir()
		g := s.group()
		var all sync.WaitGroup
		ask := func(label string, after, ends time.Duration) {
			all.Go(func() {
				time.Sleep(after)
				begin := time.Now().Add(-after)
				done(t, g, root, label)
				if took := time.Since(begin); took != ends {
					t.Errorf("%s, asked after %v: had after %v, not %v", label, after, took, ends)
				}
			})
		}
		ask(labelA, 0, 10*time.Second)
		ask(labelB, 1*time.Second, 20*time.Second)
		ask(labelA, 2*time.Second, 10*time.Second) // joins the one that runs
		ask(labelA, 12*time.Second, 30*time.Second)
		ask(labelB, 13*time.Second, 20*time.Second) // likewise
		ask(labelB, 22*time.Second, 40*time.Second) // its result is none any more
		time.Sleep(4 * time.Second)
		p := pending(t, g, root, labelB, 2*time.Second)
		if p.Waits != "the relabel to "+labelA || p.Elapsed != 5*time.Second || p.Callers != 1 {
			t.Errorf("%+v", p)
		}
		if want := fmt.Sprintf("%q: relabelling goes on: after 5s, waiting for the relabel to u:r:t:s0:c1; ask again within 2m0s", root); p.Error() != want {
			t.Errorf("%s\nnot\n%s", p.Error(), want)
		}
		if p := g.Work(); len(p) != 2 || p[0].Label != labelA || p[0].Callers != 2 || p[0].Entries != 6000 || p[1].Label != labelB {
			t.Errorf("%+v", p)
		}
		all.Wait()
		s.ran(t, labelA, labelB, labelA, labelB)
		empty(t, g)
	})
}

// TestGroupTurn: a place in the queue is kept as long as work lingers, and two
// labels whose callers come and go are both served.
func TestGroupTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := &slow{takes: 5 * time.Minute}, t.TempDir()
		g := s.group()
		pending(t, g, root, labelA, time.Second)
		pending(t, g, root, labelB, time.Second)
		time.Sleep(119 * time.Second) // A is cancelled meanwhile, B begins
		p := pending(t, g, root, labelB, 2*time.Second)
		if p.Waits != "" || len(s.halted) != 1 || p.Elapsed != 2*time.Second {
			t.Errorf("%+v; cancelled: %v", p, s.halted)
		}
		time.Sleep(time.Second)
		pending(t, g, root, labelA, time.Second) // and A gives its place up
		done(t, g, root, labelB)
		time.Sleep(time.Second)
		s.ran(t, labelA, labelB)
		empty(t, g)
		s.ran(t, labelA, labelB)

		var all sync.WaitGroup
		for _, label := range []string{labelA, labelB} {
			all.Go(func() {
				begin := time.Now()
				for {
					if _, err := request(t, g, root, label, time.Minute); err == nil {
						break
					}
					time.Sleep(10 * time.Second)
				}
				if took := time.Since(begin); took > 11*time.Minute {
					t.Errorf("%s: took %v", label, took)
				}
			})
		}
		all.Wait()
		if len(s.runs) != 4 || s.twice {
			t.Errorf("ran %q", s.runs)
		}
		empty(t, g)
	})
}

// TestGroupKept: what a success is good for that two callers left for, and what
// ends it.
func TestGroupKept(t *testing.T) {
	for _, c := range []struct {
		name string
		keep time.Duration
		then func(s *slow, g *Group, t *testing.T, root string)
		runs []string
	}{
		{"once", 0, func(s *slow, g *Group, t *testing.T, root string) {}, []string{labelA}},
		{"both", 0, func(s *slow, g *Group, t *testing.T, root string) { done(t, g, root, labelA) }, []string{labelA}},
		{"a fresh caller", 0, func(s *slow, g *Group, t *testing.T, root string) {
			done(t, g, root, labelA)
			done(t, g, root, labelA)
		}, []string{labelA, labelA}},
		{"in time", 0, func(s *slow, g *Group, t *testing.T, root string) { time.Sleep(asLong - 2) }, []string{labelA}},
		{"late", 0, func(s *slow, g *Group, t *testing.T, root string) { time.Sleep(asLong + 1) }, []string{labelA, labelA}},
		{"not kept", -1, func(s *slow, g *Group, t *testing.T, root string) { synctest.Wait() }, []string{labelA, labelA}},
		{"another label", 0, func(s *slow, g *Group, t *testing.T, root string) { done(t, g, root, labelB) }, []string{labelA, labelB, labelA}},
		{"another label begun", 0, func(s *slow, g *Group, t *testing.T, root string) {
			go func() { _, _ = g.Tree(t.Context(), root, labelB, TrustNothing) }()
			time.Sleep(time.Second / 4)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.label[root] = labelA // as if it had not come to the seal
		}, []string{labelA, labelB, labelA}},
		{"relabelled by others", 0, func(s *slow, g *Group, t *testing.T, root string) { s.label[root] = labelB }, []string{labelA, labelA}},
		{"another directory", 0, func(s *slow, g *Group, t *testing.T, root string) {
			if err := errors.Join(os.Rename(root, root+".old"), os.Mkdir(root, 0o700)); err != nil {
				t.Fatal(err)
			}
		}, []string{labelA, labelA}},
		{"another path", 0, func(s *slow, g *Group, t *testing.T, root string) {
			if err := errors.Join(os.Rename(root, root+".new"), os.Symlink(root+".new", root)); err != nil {
				t.Fatal(err)
			}
			s.label[root+"/"] = labelA
			done(t, g, root+"/", labelA)
			if err := errors.Join(os.Remove(root), os.Rename(root+".new", root)); err != nil {
				t.Fatal(err)
			}
		}, []string{labelA}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, root := &slow{takes: time.Second}, filepath.Join(t.TempDir(), "root")
				if err := os.Mkdir(root, 0o700); err != nil {
					t.Fatal(err)
				}
				g := s.group()
				g.Keep = c.keep
				var both sync.WaitGroup
				for range 2 {
					both.Go(func() { pending(t, g, root, labelA, time.Second/2) })
				}
				both.Wait()
				time.Sleep(time.Second/2 + 1)
				synctest.Wait()
				c.then(s, g, t, root)
				done(t, g, root, labelA)
				s.ran(t, c.runs...)
				empty(t, g)
			})
		})
	}
}

// TestGroupFresh: a success of which all who asked were told is no answer to those
// who ask later, for there may be a stray since.
func TestGroupFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := &slow{takes: time.Second}, t.TempDir()
		g := s.group()
		done(t, g, root, labelA)
		done(t, g, root, labelA)
		// Who left and came back to the work was told, too.
		s.takes = 4 * time.Second
		pending(t, g, root, labelA, time.Second)
		done(t, g, root, labelA)
		done(t, g, root, labelA)
		s.ran(t, labelA, labelA, labelA, labelA)
		empty(t, g)
	})
}

// TestGroupFailure: a failure is told to those who wait or, if there are none, to
// one who comes back. All others have it tried again.
func TestGroupFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		oops := &fs.PathError{Op: "setxattr", Path: "f", Err: errors.New("oops")}
		s, root := &slow{takes: 5 * time.Second, fails: oops}, t.TempDir()
		g := s.group()
		fails := func(after time.Duration) {
			t.Helper()
			begin := time.Now()
			r, err := request(t, g, root, labelA, time.Hour)
			if !errors.Is(err, oops) || r.Complete || r.Seen != 5000 || time.Since(begin) != after {
				t.Errorf("after %v: %+v, %v", time.Since(begin), r, err)
			}
		}
		pending(t, g, root, labelA, time.Second)
		fails(4 * time.Second)
		fails(5 * time.Second) // all that waited were told
		pending(t, g, root, labelA, time.Second)
		time.Sleep(time.Minute)
		fails(0)
		fails(5 * time.Second) // once
		pending(t, g, root, labelA, time.Second)
		time.Sleep(3 * time.Minute)
		fails(5 * time.Second) // too late
		s.fails = nil
		done(t, g, root, labelA)
		s.ran(t, labelA, labelA, labelA, labelA, labelA, labelA, labelA)
		empty(t, g)
	})
}

// TestGroupDeadStorage: callers leave while not even the root can be looked at,
// and however many come back, one call waits.
func TestGroupDeadStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := &slow{takes: time.Second}, t.TempDir()
		g := s.group()
		back, looks := make(chan bool), atomic.Int64{}
		g.calls.at = func(root string) (volumeID, error) {
			looks.Add(1)
			<-back
			return volumeAt(root)
		}
		for range 10 {
			cause := errors.New("enough")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, cause)
			_, err := g.Tree(ctx, root, labelA, TrustNothing)
			cancel()
			var h *HungError
			if !errors.As(err, &h) || len(h.Calls) != 1 || h.Calls[0].Path != root || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, cause) {
				t.Errorf("%v", err)
			}
			if _, err := g.Tree(ctx, root, labelA, TrustNothing); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &h) && h.Cause == nil {
				t.Errorf("after the end: %v", err)
			}
		}
		if n := looks.Load(); n != 1 {
			t.Errorf("%d calls hang", n)
		}
		// Meanwhile another volume is as quick as ever.
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { done(t, g, root, labelA) })
		}
		synctest.Wait()
		close(back)
		all.Wait()
		if n := looks.Load(); n != 2 {
			t.Errorf("%d looks, where one for the dead and one for all others do", n)
		}
		s.ran(t, labelA)
		empty(t, g)
	})
}

// TestGroupLooksAfterwards: who arrives while a look is under way is not given
// what it saw, for the path may have been another's by then.
func TestGroupLooksAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := &slow{takes: time.Minute}, filepath.Join(t.TempDir(), "root")
		if err := os.Mkdir(root, 0o700); err != nil {
			t.Fatal(err)
		}
		g := s.group()
		g.calls.at = func(root string) (volumeID, error) {
			id, err := volumeAt(root)
			time.Sleep(2 * time.Second)
			return id, err
		}
		var all sync.WaitGroup
		all.Go(func() { done(t, g, root, labelA) })
		time.Sleep(time.Second)
		if err := errors.Join(os.Rename(root, root+".old"), os.Mkdir(root, 0o700)); err != nil {
			t.Fatal(err)
		}
		all.Go(func() { done(t, g, root, labelA) })
		time.Sleep(10 * time.Second)
		if p := g.Work(); len(p) != 2 || p[0].Callers != 1 || p[1].Callers != 1 {
			t.Errorf("%+v", p)
		}
		all.Wait()
		empty(t, g)
	})
}

// TestGroupProgress: what holds a run up is told until it moves again.
func TestGroupProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		g := &Group{Options: Options{
			Trace: &Trace{Wait: func(holder string) { told = append(told, holder) }, Stall: func(calls []HungCall) { told = append(told, calls[0].String()) }},
		}}
		g.calls.tree = func(_ context.Context, root, label string, o Options) (Report, error) {
			var seen atomic.Int64
			begins(o.Progress, func() State { return State{Seen: seen.Load()} })
			o.Trace.Wait("process 12")
			time.Sleep(3 * time.Second)
			seen.Add(1)
			time.Sleep(2 * time.Second)
			o.Trace.Stall([]HungCall{{"getxattr", "/v/f"}, {"openat", "/v/d"}})
			time.Sleep(2 * time.Second)
			seen.Add(1_203_000)
			time.Sleep(2 * time.Second)
			return Report{}, nil
		}
		go func() { _, _ = g.Tree(t.Context(), t.TempDir(), labelA, TrustNothing) }()
		var stages []string
		for range 4 {
			time.Sleep(2 * time.Second)
			stages = append(stages, g.Work()[0].String())
		}
		if !slices.Equal(stages, []string{
			"after 2s, waiting for the volume's lock, held by process 12",
			"1 entry after 4s",
			`1 entry after 6s, waiting for 2 calls of the filesystem, one of them getxattr "/v/f"`,
			"1,203,001 entries after 8s",
		}) {
			t.Errorf("%q", stages)
		}
		if !slices.Equal(told, []string{"process 12", `getxattr "/v/f"`}) {
			t.Errorf("the caller's own callbacks were told %q", told)
		}
		time.Sleep(time.Minute)
	})
}

// TestGroupLink: a link is labelled itself, as by Tree, and is another volume
// than what it leads to.
func TestGroupLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := &slow{takes: time.Second}, t.TempDir()
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(root, link); err != nil {
			t.Fatal(err)
		}
		g := s.group()
		var all sync.WaitGroup
		for _, path := range []string{root, link, link + "/."} {
			all.Go(func() { done(t, g, path, labelA) })
		}
		synctest.Wait()
		if p := g.Work(); len(p) != 2 || p[0].Callers+p[1].Callers != 3 {
			t.Errorf("%+v", p)
		}
		all.Wait()
		s.ran(t, labelA, labelA)
		empty(t, g)
	})
}

// TestGroupRefuses: what Tree would refuse at once is refused at once.
func TestGroupRefuses(t *testing.T) {
	var g Group
	if _, err := g.Tree(t.Context(), t.TempDir(), "container_file_t", TrustNothing); !errors.Is(err, ErrLabel) {
		t.Error(err)
	}
	if r, err := g.Tree(t.Context(), "/no/such/volume", "u:r:t:s0:c1,c1", TrustNothing); !errors.Is(err, fs.ErrNotExist) || r.Label != labelA {
		t.Errorf("%+v, %v", r, err)
	}
	if len(g.volumes) > 0 {
		t.Error("something is kept")
	}
}

// TestGroupStorm has callers of three labels on three volumes come and go at
// random times. Whoever is served is served by a run that ended since, or that
// was the last of its volume.
func TestGroupStorm(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			s := &slow{takes: 7 * time.Second}
			g := s.group()
			g.Linger, g.Keep = 3*time.Second, 4*time.Second
			roots := []string{t.TempDir(), t.TempDir(), t.TempDir()}
			var all sync.WaitGroup
			for range 200 {
				root, label := roots[rng.IntN(3)], fmt.Sprintf("u:r:t:s0:c%d", 1+rng.IntN(3))
				wait, limit := time.Duration(rng.IntN(200_000))*time.Millisecond, time.Duration(rng.IntN(9_000))*time.Millisecond
				again := rng.IntN(4)
				all.Go(func() {
					time.Sleep(wait)
					for range again {
						asked := time.Now()
						switch r, err := request(t, g, root, label, limit); {
						case err == nil && (!r.Complete || r.Label != label || r.Root != root):
							t.Errorf("%+v", r)
						case err == nil:
							s.vouches(t, int(r.Written), asked)
						case !errors.Is(err, context.DeadlineExceeded):
							t.Error(err) // nobody is told that others stopped it
						}
					}
				})
			}
			all.Wait()
			empty(t, g)
			if s.twice || len(s.runs) < 10 {
				t.Errorf("seed %d: two runs on one volume: %t; %d runs, %d cancelled", seed, s.twice, len(s.runs), len(s.halted))
			}
		})
	}
}

// vouches checks that run n is an answer to who asked then.
func (s *slow) vouches(t *testing.T, n int, asked time.Time) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.spans[n].end.Before(asked) {
		return
	}
	for _, later := range s.spans[n+1:] {
		if later.root == s.spans[n].root && later.begin.Before(asked) {
			t.Errorf("run %d, %q, had ended, and another had begun", n, s.runs[n])
		}
	}
}
