// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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

// TestGroupTrace: each run has the Trace that is made for its root, and Work says
// what holds it up all the same.
func TestGroupTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told bytes.Buffer
		log := slog.New(slog.NewTextHandler(&told, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		g := &Group{Trace: func(root string) *Trace {
			if strings.HasSuffix(root, "silent") {
				return nil
			}
			return LogTo(log, filepath.Base(root))
		}}
		g.calls.tree = func(_ context.Context, root, label string, o Options) (Report, error) {
			begins(o.Progress, func() State { return State{} })
			if o.Trace.Note != nil {
				o.Trace.Note("not sealed")
			}
			o.Trace.Wait("process 12")
			time.Sleep(time.Second)
			return Report{}, nil
		}
		dir := t.TempDir()
		for _, name := range []string{"a", "b", "silent"} {
			root := filepath.Join(dir, name)
			if err := os.Mkdir(root, 0o700); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = g.Tree(t.Context(), root, labelA, TrustNothing) }()
			time.Sleep(time.Second / 2)
			if w := g.Work(); len(w) != 1 || w[0].Waits != "the volume's lock, held by process 12" {
				t.Errorf("%s: %v", name, w)
			}
			time.Sleep(time.Second)
		}
		want := ""
		for _, root := range []string{"a", "b"} {
			want += `level=WARN msg="not sealed" root=` + root + "\n" +
				`level=INFO msg="waits for another relabel of the volume" holder="process 12" root=` + root + "\n"
		}
		if told.String() != want {
			t.Errorf("%s", &told)
		}
		empty(t, g)
	})
}
