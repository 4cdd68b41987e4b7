// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
)

// lastWord is a context that does something when a caller is about to wait.
type lastWord struct {
	context.Context
	do func()
}

func (c lastWord) Done() <-chan struct{} {
	c.do()
	return c.Context.Done()
}

// TestGroupStopArrival: a caller who has arrived before a stop begins no work after
// it, though the root was looked at by then as well. Which of the two the caller sees
// first is up to chance.
func TestGroupStopArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			s := &slow{}
			g := s.group()
			ctx := lastWord{t.Context(), sync.OnceFunc(func() {
				synctest.Wait() // for the look
				g.halt(errStopped, func(at string) bool { return at == root })
			})}
			if _, err := g.Do(ctx, root, keyA); !errors.Is(err, errStopped) {
				t.Errorf("after a stop: %v", err)
			}
			s.ran(t)
			empty(t, g)
		}
	})
}

// TestGroupStopHeld: Stop returns when the run holds nothing any more, or says what it
// still holds; all callers are told when the run has returned.
func TestGroupStopHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: time.Hour}
		g := s.group()
		until := make(chan struct{})
		g.Run = func(ctx context.Context, w *work) (*Held, error) {
			_, err := s.run(ctx, w)
			return &Held{until, func(cause error) error { return errors.Join(errHangs, cause) }}, err
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
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := g.Stop(ctx, root, errStopped); !errors.Is(err, errHangs) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		told.Wait()
		if all := g.Works(); len(all) != 0 {
			t.Errorf("%+v", all)
		}
		time.AfterFunc(time.Minute, func() { close(until) })
		begin := time.Now()
		if err := g.Stop(t.Context(), root, errStopped); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if err := g.Shutdown(t.Context(), errStopped); err != nil {
			t.Error(err)
		}
		if _, err := g.Do(t.Context(), root, keyA); !errors.Is(err, errStopped) {
			t.Error(err)
		}
		s.ran(t, keyA)
		empty(t, g)
	})
}

// TestGroupLookers: those who look have a budget of their own, and a caller who waits
// for that hangs nowhere.
func TestGroupLookers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: time.Second}
		g := s.group()
		var shares []*budget.Share
		for range mostLookers {
			share, err := lookers.Enter(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			shares = append(shares, share)
		}
		if _, err := request(t, g, root, keyA, time.Second); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errHangs) {
			t.Error(err)
		}
		for _, share := range shares {
			share.Close()
		}
		done(t, g, root, keyA)
		empty(t, g)
	})
}
