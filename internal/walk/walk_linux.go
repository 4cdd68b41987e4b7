// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/internal/budget"
	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/order"
	"github.com/fastlabel/fastlabel/internal/policy"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/steal"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

const (
	// mostOpen bounds the directories that are open for later. A walk in depth seldom needs more.
	mostOpen = 36
	// waiting workers begin on a filesystem with a server where that is left to us, and there are
	// up to mostWaiting if they pay. At 1 ms a call 20,000 entries take 50 s with one worker,
	// 1.6 s with 48 and 0.7 s with 256, when server and walk keep two processors busy; at
	// 0.05 ms a call 0.6 s with 48 and 0.8 s with 256.
	waiting     = 48
	mostWaiting = 256
	// spares bounds the workers that one walk may add in place of others.
	spares = 16
)

// Job describes a walk. It does not change while one is under way. Its functions are called
// by any worker, several at a time.
type Job struct {
	Want *Want // of what a walk begins with
	// Change chooses what is written where the label want is wanted and has was read, ""
	// for none: with Written the first result, with Right nothing, with Skipped nothing
	// too, but the result, if not "", is the reason, to be reported with Changed. nil: want.
	Change    func(has, want string) (string, Outcome, error)
	Writes    Writes // ReadFirst or DryRun, where there is a Change or are Rules
	HardLinks HardLinks
	Workers   int // below 1: as many as is best
	Kernel    Kernel
	Policy    *policy.Policy // asked why a label was refused; nil where SELinux is off

	// Throttle is called by a worker before it labels so many entries; an error ends the
	// run. nil: the walk is not slowed down.
	Throttle func(ctx context.Context, entries int) error
	Events   Events
	Stop     func(why error) // ends the run
	// Ours is asked before a row is written: commit.ErrOvertaken ends the walk, and while it is
	// commit.ErrLate the walk waits. nil: nothing is committed.
	Ours func() error

	// ByName lets labels be read by name where nothing was mounted when the mount was opened:
	// the caller makes sure that nothing was by the end. Else a name is pinned first.
	ByName bool
	// Grow makes the mount ready for several workers: a walk begins without, as long as
	// the tree may be small. nil: it is ready.
	Grow func() error
}

// Writes chooses when a label is written.
type Writes uint8

const (
	ReadFirst Writes = iota // where another was read
	Guess                   // unread, after a row of wrong ones
	DryRun                  // not at all
)

// HardLinks chooses for a file that has several names.
type HardLinks uint8

const (
	LinksLabel HardLinks = iota
	LinksSkip
	LinksError
)

// Kernel describes this kernel.
type Kernel struct {
	Way     sys.Way // the best inside a clone
	Sorting order.Sorting
}

// Events are called by a worker, which waits. It is not taken for one that hangs.
type Events struct {
	Failed  func(path, op string, err error)
	Skipped func(path, why string)      // nil: not asked for
	Changed func(path, from, to string) // nil: not asked for
}

// Top is the directory with which a walk begins. It is open, and at its beginning.
type Top struct {
	FD        int
	Outcome   Outcome // what its own label counts as
	Rereading bool    // its entries were counted when it was read first

	// Listed is called with its entries before they are labelled, as getdents64 gives them, if
	// they fit into a buffer; may be nil.
	Listed func(entries []byte)

	Failed bool // after the walk: its entries could not all be read, and it counts as failed
}

// Walk is one walk. Run belongs to one goroutine; Yield to the one that looks at the
// workers; all else may be asked at any time.
type Walk struct {
	job    *Job
	mount  *mounts.Mount
	begins *Top
	top    *directory // as which it begins
	share  *budget.Share
	ctx    context.Context

	cache  dirCache
	sorter sorter
	disk   disk
	wrong  atomic.Bool // the labels of late

	begin     int                                // so many workers, all but the first when there is work for them
	due       atomic.Int32                       // how many of those have not begun
	most      int                                // at once
	pool      atomic.Pointer[steal.Worker[item]] // any worker's end of it; nil before the first has begun
	dismissed int                                // by Yield
	mu        sync.Mutex
	workers   []*position // that have begun, also the one of a small tree; mu guards it
}

// New readies the walk of what is beneath top in m, which is enclosed or, with Grow, not yet.
func New(j *Job, m *mounts.Mount, top *Top, share *budget.Share) *Walk {
	k := &Walk{job: j, mount: m, begins: top, share: share}
	k.top = &directory{mount: m, fd: int32(top.FD), shared: true, own: j.Want.Label, want: j.Want, outcome: top.Outcome, rereading: top.Rereading}
	k.cache.limit = smallOpen // until there are workers
	return k
}

// size chooses with how many workers the walk begins, how many there may be at most,
// and how many directories may be open.
func (k *Walk) size() (workers, most int) {
	workers, most = k.job.Workers, k.job.Workers
	if workers < 1 {
		workers, most = processors(), mostWorkers
		if k.mount.Served {
			workers, most = max(workers, waiting), mostWaiting
		}
		most = max(workers, most)
	}
	if k.job.Throttle != nil {
		most = workers // more of them are no faster
	}
	open := mostOpen
	if k.mount.Served {
		open = max(open, 2*most) // items of as many wait, and to find one again takes calls
	}
	may := budget.LeastFiles + k.share.Descriptors(max(2*most*budget.PerWorker, most*budget.PerWorker+2*open))
	most = max(1, min(most, may/(2*budget.PerWorker)))
	k.cache.resize(max(2, min(open, (may-most*budget.PerWorker)/2)))
	return min(workers, most), most
}

// Run labels all, and returns when the last worker has ended.
func (k *Walk) Run(ctx context.Context) (err error) {
	k.ctx = ctx
	k.cache.pinRest(k.top)
	items := []item{rest{k.top}}
	if k.job.Grow != nil {
		items, err = k.runSmall(items)
	}
	if err == nil && len(items) > 0 {
		items, err = k.runPool(items)
	}
	for _, it := range items {
		switch it := it.(type) {
		case rest:
			k.cache.release(it.dir)
		case upper:
			sys.Close(it.fd)
		}
	}
	k.cache.clear()
	k.begins.Failed = k.top.failed
	return err
}

// runPool has workers label all that the items lead to, and returns those that are left.
func (k *Walk) runPool(items []item) ([]item, error) {
	if k.job.Way(k.mount) == sys.ByThread {
		if e := k.mount.OpenOutside(); e != 0 {
			return items, &fs.PathError{Op: "openat", Path: ".", Err: e}
		}
	}
	k.begin, k.most = k.size()
	k.due.Store(int32(k.begin - 1))
	more, over := spares, func() {}
	if k.most > k.begin {
		more += joins * k.most
		over = k.tune()
	}
	left, err := steal.Run(k.ctx, items, steal.Job[item]{
		Spares: k.begin - 1 + more,
		Begin: func(p *steal.Worker[item]) (func(item), func(), error) {
			w := k.worker(p)
			w.buf = make([]byte, bufferSize)
			w.pos.row.names.Stop = p.StopFlag()
			k.pool.Store(p)
			if k.wrong.Load() {
				w.labels.wrong = guessAfter
			}
			if op, e := w.labels.io.Ready(); e != 0 {
				return nil, nil, &fs.PathError{Op: op, Path: k.mount.Path, Err: e}
			}
			w.pos.row.way = w.labels.io.Way
			return w.do, func() { w.retire(); k.share.Put() }, nil
		},
	})
	over()
	k.sorter.clear(&k.cache)
	k.disk.close()
	return left, err
}

// One labels what m is of and nothing beneath it.
func One(j *Job, m *mounts.Mount) Outcome {
	k := &Walk{job: j, mount: m}
	w := k.worker(nil)
	w.labels.io.Way = sys.ByDescriptor
	return w.labels.label(xattrio.Target{FD: m.At, Pinned: true}, &directory{mount: m, fd: -1, own: j.Want.Label})
}

// worker returns one that begins, which others can look at from then on.
func (k *Walk) worker(q queue) *worker {
	w := &worker{walk: k, cache: &k.cache, mount: k.mount, queue: q, visited: -1}
	w.pos.walk = k
	w.labels.walk, w.labels.queue, w.labels.pos = k, q, &w.pos
	w.labels.io = xattrio.IO{Attr: xattrio.New("").Attr, Way: k.job.Way(k.mount), Open: k.mount.Pin, Stale: k.mount.Stale}
	w.labels.io.SetLabel(k.job.Want.Label)
	w.pos.row.way = w.labels.io.Way
	k.mu.Lock()
	k.workers = append(k.workers, &w.pos)
	k.mu.Unlock()
	return w
}

// Way returns the Way to label the entries of m. Only in a clone no mount can be slipped over a name,
// so elsewhere each entry is pinned first, as where links are counted.
func (j *Job) Way(m *mounts.Mount) sys.Way {
	if m.Confined == mounts.Clone && j.HardLinks == LinksLabel {
		return j.Kernel.Way
	}
	return sys.ByDescriptor
}

func (k *Walk) all() []*position {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.workers
}

// Watched are the workers, as they are looked at.
func (k *Walk) Watched(yield func(run.Watched) bool) {
	for _, p := range k.all() {
		if !yield(p) {
			return
		}
	}
}

// Tally returns the counts so far, but for the rows at hand.
func (k *Walk) Tally() (t Tally) {
	for _, p := range k.all() {
		counted, _ := p.counted()
		t.Add(counted)
	}
	return t
}

// Path returns a directory that is worked on; "" where there is none.
func (k *Walk) Path() string {
	for _, p := range k.all() {
		if d := p.dir.Load(); d != nil {
			return d.Path("")
		}
	}
	return ""
}

// Yield gives up all workers but one, and descriptors, because other runs wait. working is
// how many work; 0 says that no run waits.
func (k *Walk) Yield(working int) {
	if working == 0 {
		k.dismissed = 0
		return
	}
	if p := k.pool.Load(); p != nil && working-1 > k.dismissed { // less those that were asked before
		p.Dismiss(working - 1 - k.dismissed)
		k.dismissed = working - 1
	}
	k.share.Trim(budget.RunFiles + 2*k.cache.shrink()) // fewer stay open for later
}

// beginDue has one of the workers begin that are due. Of several such calls at once some may do
// nothing.
func (k *Walk) beginDue() {
	if n := k.due.Load(); n > 0 && k.due.CompareAndSwap(n, n-1) && !k.add(false) {
		k.due.Add(1)
	}
}

// add adds a worker, if there is a pool and the process may have one more. trial: see Share.Worker.
func (k *Walk) add(trial bool) bool {
	pool := k.pool.Load()
	if pool == nil || !k.share.Worker(trial) {
		return false
	}
	if !pool.AddWorker() {
		k.share.Put()
		return false
	}
	return true
}
