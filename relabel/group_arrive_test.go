// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
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
			s, root := &slow{}, t.TempDir()
			g := s.group()
			ctx := lastWord{t.Context(), sync.OnceFunc(func() {
				synctest.Wait() // for the look
				g.halt(func(at string) bool { return at == root }, volumeID{})
			})}
			if _, err := g.Tree(ctx, root, labelA, TrustNothing); !errors.Is(err, ErrStopped) {
				t.Errorf("after a stop: %v", err)
			}
			s.ran(t)
			empty(t, g)
		}
	})
}
