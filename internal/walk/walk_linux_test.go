// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/internal/budget"
	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }

// ample is a share that no walk here uses up.
func ample(t *testing.T) *budget.Share {
	t.Helper()
	share, err := budget.New(1<<10, func() int { return 1 << 20 }).Enter(t.Context())
	treetest.Must(t, err)
	return share
}

// TestWorkers: where calls wait for a server, more of them wait at once, unless
// the caller says how many.
func TestWorkers(t *testing.T) {
	cores := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	for _, test := range []struct {
		threads    int
		served     bool
		want, most int
	}{
		{0, false, cores, max(cores, mostWorkers)},
		{0, true, max(cores, waiting), max(cores, mostWaiting)},
		{3, false, 3, 3},
		{3, true, 3, 3},
	} {
		k := &Walk{job: &Job{Workers: test.threads}, mount: &mounts.Mount{Served: test.served}, share: ample(t)}
		if got, most := k.size(); got != test.want || most != test.most {
			t.Errorf("%+v: %d workers, %d at most", test, got, most)
		}
	}
}

// slow are rules that take their time, as a server does that is never busy, and tell how
// many workers wait at once.
type slow struct {
	latency time.Duration
	waiting atomic.Int32
	tell    func(waiting int32)
}

func (s *slow) Entry([]byte, sys.Kind) (string, error) {
	s.tell(s.waiting.Add(1))
	time.Sleep(s.latency)
	s.waiting.Add(-1)
	return "system_u:object_r:container_file_t:s0", nil
}

func (s *slow) Beneath([]byte) *Want { return &Want{Rules: s} }

// TestWaitTogether: where calls wait for a server that has time, many more of them are
// under way at once than the walk began with.
func TestWaitTogether(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "setxattrat") // without, an emulated processor keeps up with too few
	root := filepath.Join(treetest.Fresh(t, "tmpfs"), "tree")
	treetest.Build(t, root, treetest.Text(t, "dir .\nfile f%d x30000\n"))
	const many = 3 * waiting
	// On a machine that is slow, or busy, more workers pay only if the server is slower still.
	for latency := 2 * time.Millisecond; latency < time.Second; latency *= 2 {
		m := enclosed(t, root)
		m.Served = true
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second+20*latency)
		var reached atomic.Bool
		s := &slow{latency: latency, tell: func(waiting int32) {
			if waiting >= many {
				reached.Store(true)
				stop()
			}
		}}
		_ = New(&Job{Want: &Want{Rules: s}, Stop: func(error) { stop() }}, m, &Top{FD: m.Top, Outcome: Skipped}, ample(t)).Run(ctx)
		if stop(); reached.Load() {
			return
		}
	}
	t.Errorf("never %d at once, and the walk begins with %d", many, waiting)
}

// TestBeginUnread: a worker that begins when the labels met of late were wrong writes
// unread, as the others do by then.
func TestBeginUnread(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	const label, few = "system_u:object_r:container_file_t:s0", 20
	for wrong, want := range map[bool]Outcome{true: Written, false: Right} {
		root := filepath.Join(treetest.Fresh(t, "tmpfs"), "tree")
		treetest.Build(t, root, treetest.Text(t, "default label="+label+"\ndir .\nfile f%d x20\n"))
		m := enclosed(t, root)
		k := New(&Job{Want: &Want{Label: label}, Writes: Guess}, m, &Top{FD: m.Top, Outcome: Skipped}, ample(t))
		k.wrong.Store(wrong)
		if err := k.Run(t.Context()); err != nil || k.Tally().Of[want] != few {
			t.Errorf("%t: %+v, %v", wrong, k.Tally(), err)
		}
	}
}

// enclosed is the mount that root is the top of.
func enclosed(t *testing.T, root string) *mounts.Mount {
	t.Helper()
	p, err := mounts.OpenProc(mounts.Seen{})
	treetest.Must(t, err)
	t.Cleanup(p.Close)
	m, err := p.OpenRoot(root, nil, new(run.Activity))
	treetest.Must(t, err)
	t.Cleanup(m.Close)
	treetest.Must(t, p.Learn(m, mounts.Bounds{}))
	if op, e := m.Enclose(mounts.Bounds{}, mounts.Try{Clone: true, Openat2: true}); e != 0 {
		t.Fatal(op, e)
	}
	t.Cleanup(m.Leave)
	return m
}
