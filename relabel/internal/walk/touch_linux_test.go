// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
)

const (
	touchedFiles = 3000 // of 200 bytes: a buffer holds some 290 of them
	touchedLabel = "system_u:object_r:container_file_t:s0:c1,c2"
)

// touchedName is the name of each.
var touchedName = strings.Repeat("n", 196) + "%04d"

// asks are rules that give all the same label, once asked has returned.
type asks struct{ asked func(name string) }

func (a asks) Entry(name []byte, _ sys.Kind) (string, error) {
	a.asked(string(name))
	return touchedLabel, nil
}

func (a asks) Beneath([]byte) *Want { return &Want{Rules: a} }

// touching is a walk of a large directory of XFS by four workers, and its root.
func touching(t *testing.T, asked func(name string)) (*Walk, string) {
	t.Helper()
	root := filepath.Join(treetest.Fresh(t, "xfs"), "root")
	treetest.Build(t, root, treetest.Text(t, fmt.Sprintf("dir .\nfile %s x%d\n", touchedName, touchedFiles)))
	m := enclosed(t, root)
	k := New(&Job{
		Top: &Want{touchedLabel, asks{asked}}, Workers: 4, Kernel: Kernel{Way: xattrio.Fastest()},
		Events: Events{Failed: func(path, op string, err error) { t.Errorf("%s %s: %v", op, path, err) }},
	}, m, &Top{FD: m.Top, Outcome: Skipped}, nil)
	return k, root
}

// lookingUp has look called before each name that is looked up ahead.
func lookingUp(t *testing.T, look func()) {
	t.Cleanup(func() { lookUp = sys.Statx })
	lookUp = func(dir int, name *byte) (sys.Stat, sys.Errno) {
		look()
		return sys.Statx(dir, name)
	}
}

// labelled checks that all has been labelled, and was counted once.
func labelled(t *testing.T, k *Walk, root string) {
	t.Helper()
	if got := k.Tally(); got.Seen != touchedFiles || got.Of[Written] != touchedFiles {
		t.Errorf("%+v", got)
	}
	for path, has := range treetest.Read(t, root) {
		if path != "." && has != touchedLabel {
			t.Errorf("%s has %q", path, has)
		}
	}
}

// TestTouches: of a large directory of a cold XFS one name a cluster is looked up ahead,
// and one worker labels at a time, but for who has the directory's last buffer. Where the
// disk is not cold, or a name may lead to another mount, nothing is looked up, and several
// label.
func TestTouches(t *testing.T) {
	treetest.Need(t, "root", "xfs")
	var looked atomic.Int64
	lookingUp(t, func() { looked.Add(1) })
	for name, test := range map[string]struct {
		cold    bool
		open    mounts.Confinement
		touches bool
	}{"cold": {true, mounts.Clone, true}, "warm": {false, mounts.Clone, false}, "no clone": {true, mounts.Resolve, false}} {
		var labelling, most atomic.Int64
		last := fmt.Sprintf(touchedName, touchedFiles-300) // of the last two buffers
		k, root := touching(t, func(name string) {
			if name >= last {
				return
			}
			for n := labelling.Add(1); n > most.Load(); {
				most.Store(n)
			}
			time.Sleep(100 * time.Microsecond)
			labelling.Add(-1)
		})
		looked.Store(0)
		k.ahead.SetCold(test.cold)
		k.m.Confined = test.open
		if err := k.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		labelled(t, k, root)
		const buffers = touchedFiles / 290
		n, at := looked.Load(), most.Load()
		if test.touches && (n < (touchedFiles-300)/cluster || n > touchedFiles/cluster+3*buffers || at > 1) || !test.touches && (n > 0 || at < 3) {
			t.Errorf("%s: %d looked up, %d label at once", name, n, at)
		}
	}
}

// TestTouchStopped: a run that is stopped looks up no more.
func TestTouchStopped(t *testing.T) {
	treetest.Need(t, "root", "xfs")
	ctx, stop := context.WithCancel(t.Context())
	var looked atomic.Int64
	var k *Walk
	lookingUp(t, func() {
		looked.Add(1)
		stop()
		for p := k.handle(); !p.Stopped(); {
			runtime.Gosched()
		}
	})
	k, _ = touching(t, func(name string) { t.Errorf("%s is labelled", name) })
	k.ahead.SetCold(true)
	if err := k.Run(ctx); !errors.Is(err, context.Canceled) || looked.Load() > int64(k.begin) {
		t.Errorf("%v; %d looked up", err, looked.Load())
	}
}

// TestTouchHeldUp: neither a name that hangs while it is looked up ahead nor one that hangs
// while its worker has the turn holds up any other.
func TestTouchHeldUp(t *testing.T) {
	treetest.Need(t, "root", "xfs")
	for _, ahead := range []bool{true, false} {
		var met sync.Map
		var seen atomic.Int64
		count := func(name string) {
			if _, again := met.LoadOrStore(name, true); !again {
				seen.Add(1)
			}
		}
		var hung atomic.Bool
		release := make(chan struct{})
		hang := func() {
			if hung.CompareAndSwap(false, true) {
				<-release
			}
		}
		lookingUp(t, func() {
			if ahead {
				hang()
			}
		})
		k, root := touching(t, func(name string) {
			if !ahead {
				hang()
			}
			count(name)
		})
		k.ahead.SetCold(true)
		ended := make(chan struct{})
		var looks sync.WaitGroup
		looks.Go(func() { // a run does, at longer intervals
			a, last, still := watch.New(), int64(0), 0
			for {
				select {
				case <-ended:
					return
				case <-time.After(20 * time.Millisecond):
				}
				a.Look(k.Watched)
				n := seen.Load()
				if still++; n != last {
					last, still = n, 0
				}
				most := int64(touchedFiles)
				if !ahead { // of a row that hangs its worker has read the rest already
					most -= sys.RowLen
				}
				if enough := n >= most; hung.Load() && (enough && still == 5 || still == 500) {
					if !enough {
						t.Errorf("ahead %t: %d of %d are labelled beside one that hangs", ahead, n, touchedFiles)
					}
					close(release)
					<-ended
					return
				}
			}
		})
		err := k.Run(t.Context())
		close(ended)
		looks.Wait()
		if err != nil || !hung.Load() {
			t.Errorf("ahead %t: %v, hung %t", ahead, err, hung.Load())
		}
		labelled(t, k, root)
	}
}

// TestTurnMoves: a worker that waits for its turn moves, until the one that has it is held up.
func TestTurnMoves(t *testing.T) {
	by := &worker{}
	k := &Walk{workers: make([]atomic.Pointer[worker], 1)}
	k.turn.Store(by)
	w := &worker{Walk: k}
	w.in.Store(&Dir{})
	w.watch()
	k.workers[0].Store(w)
	taken := make(chan struct{})
	go func() { w.takeTurn(); close(taken) }()
	a := watch.New()
	for range 2 * watch.Limit / watch.Every {
		for before := w.pauses.Load(); w.pauses.Load() == before; {
			time.Sleep(time.Millisecond)
		}
		if moves, held := a.Look(k.Watched); !moves || held > 0 {
			t.Errorf("moves %t, held up %d", moves, held)
		}
	}
	by.watched.HeldUp.Store(true)
	<-taken
	if k.turn.Load() != w {
		t.Error("it has no turn")
	}
}

// TestFirsts: a name that is in the cluster of the name before it is not touched.
func TestFirsts(t *testing.T) {
	var records []byte
	for i, name := range []string{".", "..", "a", "b", "c", "d", "e"} {
		records = sys.AppendRecord(records, []uint64{1, 2, 30, 31, 32, 63, 31}[i], sys.KindFile, []byte(name))
	}
	got := ""
	first, of := firsts(append(records, "malformed"...))
	for _, e := range first {
		got += string(e.Name)
	}
	if got != "ace" || of != 5 {
		t.Errorf("%q of %d", got, of)
	}
}
