// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
// obsolete label blocks no new one.
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
	nothingLeft(t, goroutines, files)
}

// TestGroupStopFrozen: beside a call that hangs Stop says so, and that it is over when
// it is.
func TestGroupStopFrozen(t *testing.T) {
	vol := treetest.Fresh(t, "ext4") // which is unmounted at the end
	root := grow(t, vol, seventyOne)
	ice := newFreezer(t, vol)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	at := &gate{open: make(chan struct{})}
	g := at.group()
	waits := asks(t.Context(), g, root, newLabel)
	treetest.Wait(t, "the walk begins", func() bool { return at.walks.Load() == 1 })
	ice.freeze(t)
	close(at.open)
	treetest.Wait(t, "it hangs", func() bool {
		w := g.Pending()
		return len(w) == 1 && strings.Contains(w[0].Waits, " of the filesystem, one of them ")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := g.Stop(ctx, root); !errors.As(err, new(*HungError)) && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if got := <-waits; !errors.As(got.err, new(*HungError)) || !errors.Is(got.err, ErrStopped) {
		t.Error(got.err)
	}
	ice.thaw(t)
	treetest.Check(t, g.Stop(t.Context(), root))
	nothingLeft(t, goroutines, files)
}

// TestGroupShutdown: all volumes are let go, and those who come are told.
func TestGroupShutdown(t *testing.T) {
	dir := on(t, "tmpfs")
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	at := &gate{open: make(chan struct{})}
	g := at.group()
	var all []chan asked
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, asks(t.Context(), g, grow(t, mkdir(t, dir, name), seventyOne), newLabel))
	}
	callers(t, g, 3)
	treetest.Must(t, g.Shutdown(t.Context()))
	for _, a := range all {
		if got := <-a; !errors.Is(got.err, ErrStopped) {
			t.Error(got.err)
		}
	}
	if _, err := g.Tree(t.Context(), filepath.Join(dir, "a", "root"), newLabel, SkipNone); !errors.Is(err, ErrStopped) {
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

// TestGroupRemade: another filesystem on the same device, at the same path, with a
// root of the same number and label, is another volume.
func TestGroupRemade(t *testing.T) {
	for kind, mkfs := range map[string][]string{
		"ext4": {"mkfs.ext4", "-q", "-F"},
		"xfs":  {"mkfs.xfs", "-q", "-f"}, // its number for statfs is that of the device
	} {
		treetest.Need(t, "root", kind)
		dir := t.TempDir()
		image, point := filepath.Join(dir, "image"), mkdir(t, dir, "point")
		treetest.Must(t, os.WriteFile(image, nil, 0o600), os.Truncate(image, 320<<20))
		remake := func() string {
			for _, args := range [][]string{append(mkfs, image), {"mount", "-o", "loop", image, point}} {
				if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %v: %s", args, err, out)
				}
			}
			return grow(t, point, seventyOne)
		}
		unmount := func() {
			treetest.Check(t, unix.Unmount(point, 0))
		}
		root := remake()
		at := &gate{open: make(chan struct{})}
		g := at.group()
		ctx, cancel := context.WithCancel(t.Context())
		leaves := asks(ctx, g, root, newLabel)
		callers(t, g, 1)
		cancel()
		if got := <-leaves; !errors.As(got.err, new(*PendingError)) {
			t.Error(got.err)
		}
		close(at.open)
		treetest.Wait(t, "the work ends", func() bool { return len(g.Pending()) == 0 })
		unmount()
		remake()
		treetest.Set(t, root, ".", newLabel)
		if r, err := g.Tree(t.Context(), root, newLabel, SkipNone); err != nil || r.Written != 70 || at.walks.Load() != 2 {
			t.Errorf("%s: %d walks, %+v, %v", kind, at.walks.Load(), r, err)
		}
		treetest.Check(t, g.Shutdown(t.Context()))
		unmount()
	}
}

// TestGroupStopStorm: callers come and go while volumes are stopped. Each is answered,
// and after the last stop nothing is left.
func TestGroupStopStorm(t *testing.T) {
	dir := on(t, "tmpfs")
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	roots := []string{grow(t, mkdir(t, dir, "a"), seventyOne), grow(t, mkdir(t, dir, "b"), seventyOne)}
	g := Group{Options: Options{}}
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*time.Millisecond)
			defer cancel()
			label := []string{newLabel, labelA, labelB}[i%3]
			if r, err := g.Tree(ctx, roots[i%2], label, SkipNone); err == nil && !r.Complete {
				t.Errorf("%+v", r)
			}
			if i%4 == 0 {
				treetest.Check(t, g.Stop(t.Context(), roots[i%2]))
			}
		})
	}
	all.Wait()
	treetest.Check(t, g.Shutdown(t.Context()))
	nothingLeft(t, goroutines, files)
}
