// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// asked is a caller of a Group.
type asked struct {
	report Report
	err    error
}

// asks has a caller wait in a goroutine.
func asks(ctx context.Context, g *Group, root, label string) chan asked {
	answer := make(chan asked, 1)
	go func() {
		r, err := g.Tree(ctx, root, label, SkipNone)
		answer <- asked{r, err}
	}()
	return answer
}

// callers waits until so many are counted.
func callers(t *testing.T, g *Group, n int) {
	t.Helper()
	treetest.Wait(t, "callers are counted", func() bool {
		have := 0
		for _, p := range g.Pending() {
			have += p.Callers
		}
		return have == n
	})
}

// gate lets walks begin when it is opened, or when they are stopped.
type gate struct {
	open  chan struct{}
	walks atomic.Int64
	asked atomic.Int64 // to go on, by those who walk
}

func (g *gate) group() *Group {
	return &Group{
		Options: Options{Throttle: func(ctx context.Context, _ int) error {
			g.asked.Add(1)
			select {
			case <-g.open:
			case <-ctx.Done():
			}
			return nil
		}},
		Trace: func(string) *Trace {
			g.walks.Add(1)
			return nil
		},
	}
}

// TestGroupStop: what is stopped has ended, and its volume can be unmounted; an
// obsolete label blocks no new one. Who comes after Shutdown is told.
func TestGroupStop(t *testing.T) {
	vol := mkdir(t, on(t, "tmpfs"), "volume")
	treetest.Must(t, unix.Mount("treetest", vol, "tmpfs", 0, ""))
	root := grow(t, vol, seventyOne)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	at := &gate{open: make(chan struct{})}
	g := at.group()
	runs, queued := asks(t.Context(), g, root, newLabel), asks(t.Context(), g, root, labelA)
	callers(t, g, 2)
	treetest.Wait(t, "the walk waits", func() bool { return at.asked.Load() > 0 })
	if w := g.Pending(); len(w) != 2 || w[1].Waits != "the relabel to "+w[0].Label {
		t.Errorf("%+v", w)
	}
	if err := unix.Unmount(vol, 0); !errors.Is(err, unix.EBUSY) {
		t.Errorf("unmounted during a run: %v", err)
	}
	treetest.Must(t, g.Stop(t.Context(), vol+"//root/."))
	for _, a := range []chan asked{runs, queued} {
		if got := <-a; !errors.Is(got.err, ErrStopped) || got.report.Complete {
			t.Errorf("%+v, %v", got.report, got.err)
		}
	}
	close(at.open)
	if r, err := g.Tree(t.Context(), root, labelB, SkipNone); err != nil || r.Written != 71 {
		t.Errorf("%+v, %v", r, err)
	}
	treetest.Check(t, g.Stop(t.Context(), root))
	treetest.Check(t, unix.Unmount(vol, 0))
	if err := g.Stop(t.Context(), root); err != nil {
		t.Errorf("nothing is there: %v", err)
	}
	treetest.Check(t, g.Shutdown(t.Context()))
	if _, err := g.Tree(t.Context(), vol, newLabel, SkipNone); !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
	nothingLeft(t, goroutines, files)
}

// TestGroupMoved: work that waited for its turn is not done on a directory that was
// put in its volume's place. Its caller has that one labelled, as itself.
func TestGroupMoved(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), seventyOne)
	at := &gate{open: make(chan struct{})}
	g := at.group()
	runs := asks(t.Context(), g, root, newLabel)
	treetest.Wait(t, "the walk begins", func() bool { return at.asked.Load() > 0 })
	callers(t, g, 1)
	queued := asks(t.Context(), g, root, labelB)
	callers(t, g, 2)
	treetest.Must(t, os.Rename(root, root+".old"))
	treetest.Build(t, root, treetest.Text(t, "default label="+oldLabel+"\ndir .\nfile f%d x9\n"))
	close(at.open)
	if got := <-runs; got.err != nil {
		t.Error(got.err)
	}
	if got := <-queued; got.err != nil || !got.report.Complete || got.report.Written != 10 {
		t.Errorf("%+v, %v", got.report, got.err)
	}
	// The third walk is that of the other directory: the second one found it in its way.
	if n := len(bearing(t, root+".old", newLabel)); n != 71 || at.walks.Load() != 3 {
		t.Errorf("%d of 71 have the first label; %d walks", n, at.walks.Load())
	}
}

// TestGroupChdir: a relative path leads where it led when it came.
func TestGroupChdir(t *testing.T) {
	here, there := on(t, "tmpfs"), on(t, "tmpfs")
	mine, other := grow(t, here, seventyOne), grow(t, there, seventyOne)
	at := &gate{open: make(chan struct{})}
	g := at.group()
	t.Chdir(here)
	first := asks(t.Context(), g, "root", newLabel)
	callers(t, g, 1)
	second := asks(t.Context(), g, "./root/", labelB)
	callers(t, g, 2)
	t.Chdir(there)
	close(at.open)
	for _, a := range []chan asked{first, second} {
		if got := <-a; got.err != nil || got.report.Written != 71 {
			t.Errorf("%+v, %v", got.report, got.err)
		}
	}
	if n, m := len(bearing(t, mine, labelB)), len(bearing(t, other, oldLabel)); n != 71 || m != 71 {
		t.Errorf("%d of 71 are labelled, %d of 71 elsewhere are as they were", n, m)
	}
}

// TestGroupBusy: where all workers are busy a caller is told that its work waits, not
// that the filesystem hangs.
func TestGroupBusy(t *testing.T) {
	SetMaxWorkers(1)
	defer SetMaxWorkers(0)
	dir := on(t, "tmpfs")
	root := grow(t, mkdir(t, dir, "a"), seventyOne)
	at := &gate{open: make(chan struct{})}
	g := at.group()
	busy := asks(t.Context(), g, grow(t, mkdir(t, dir, "b"), seventyOne), newLabel)
	treetest.Wait(t, "the walk begins", func() bool { return at.walks.Load() == 1 })
	brief := func() error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		answer := asks(ctx, g, root, newLabel)
		callers(t, g, 2)
		cancel()
		return (<-answer).err
	}
	for range 3 { // it comes back, too
		if err := brief(); !errors.As(err, new(*PendingError)) {
			t.Error(err)
		}
	}
	close(at.open)
	if got := <-busy; got.err != nil {
		t.Error(got.err)
	}
	if r, err := g.Tree(t.Context(), root, newLabel, SkipNone); err != nil || !r.Complete {
		t.Errorf("%+v, %v", r, err)
	}
}
