// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/relabel/internal/budget"
	"github.com/fastlabel/fastlabel/relabel/internal/steal"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

const (
	// reserve is how many descriptors are left to the rest of the process, at
	// least; of a high limit an eighth is.
	reserve = 8
	// mostOpen bounds the directories kept open for later. A walk in depth
	// keeps those above it whose entries wait, which are seldom more.
	mostOpen = 36
	// waiting is how many workers there are on a filesystem with a server where
	// that is left to us: each waits most of the time, and costs the machine
	// little. At 1 ms a call 20,000 entries take 1.7 s, and 50 s with one.
	waiting = 48
)

// size chooses with how many workers the walk of m begins, how many there may be
// at most, and how many directories may be open. For that it takes what it can get
// of the process's workers and descriptors.
func (r *run) size(m *mount, s *budget.Share) (workers, most int) {
	workers = r.o.Workers
	most = workers
	if workers < 1 {
		workers = processors()
		most = max(workers, mostWorkers)
		if m.Served {
			workers = max(workers, waiting)
			most = workers
		}
	}
	if r.o.Throttle != nil {
		most = workers // more of them get on no faster
	}
	open := mostOpen
	if r.ledger != nil {
		open = openMost
	}
	may := budget.LeastFiles + s.Descriptors(max(2*most*budget.PerWorker, most*budget.PerWorker+2*open))
	most = max(1, min(most, may/(2*budget.PerWorker)))
	if r.ledger != nil {
		workers, most = workers+1, most+1 // one of them waits for the record's disk
	}
	open = max(2, min(open, (may-most*budget.PerWorker)/2))
	if r.ledger != nil {
		r.ledger.Most = max(1, min(open/4, pagesMost))
	}
	r.cache.resize(open)
	return 1 + s.Workers(min(workers, most)-1), most
}

// filesForAll is how many descriptors all runs may have together.
func filesForAll() int {
	files := int(min(sys.OpenFiles(), 1<<20))
	return files - max(reserve, files/8)
}

// processors are those that the process may use; a caller's GOMAXPROCS may be more.
func processors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

func (r *run) worker(m *mount, p *steal.Worker[item]) *worker {
	w := &worker{run: r, pool: p, m: m}
	w.closeNext, w.rowLen = -1, sys.RowLen
	w.io = xattrio.New(r.want)
	w.io.Way, w.io.Pin = r.way(m), m.Pin
	if r.trace.Change == nil && r.ledger == nil {
		w.io.Brief() // nobody is told what an entry had
	}
	return w
}

// walk works on what is beneath top, which is open and at its beginning, and adds up
// what was done.
func (r *run) walk(ctx context.Context, t *task, m *mount, top *dir) error {
	r.cache.keep(top)
	share := t.share.Load()
	workers, most := r.size(m, share)
	defer share.Shrink()
	more := spares
	if most > workers {
		more += joins
	}
	c := &crew{share: share, workers: make([]atomic.Pointer[worker], workers+more)}
	t.At("", "") // its workers say it
	t.crew.Store(c)
	defer t.crew.Store(nil)
	var tuned sync.WaitGroup
	walking, walked := context.WithCancel(ctx)
	if most > workers {
		tuned.Go(func() { r.tune(c, tuner{cores: workers, most: most, workers: workers}, walking.Done()) })
	}
	left, err := steal.Run(ctx, []item{{dir: top}}, steal.Job[item]{
		Workers: workers,
		Spares:  more,
		Begin: func(p *steal.Worker[item]) (func(item), func(), error) {
			w := r.worker(m, p)
			w.equip()
			w.watch(c)
			c.workers[p.ID()].Store(w)
			if op, e := w.io.Ready(); e != 0 {
				return nil, nil, pathError(op, m.Path, e)
			}
			end := func() { w.retire(); share.Put() }
			if r.o.Throttle != nil {
				callers := r.throttler(ctx)
				w.rowLen = pacedRow
				w.throttle = func(entries int) { callers.throttle(ctx, p, entries) }
				end = func() { callers.end(); w.retire(); share.Put() }
			}
			w.inherit(c)
			return w.do, end, nil
		},
	})
	walked()
	tuned.Wait()
	for w := range c.all {
		r.sum(w)
	}
	m.sorter.clear(&r.cache)
	r.cache.clear(left)
	return r.blew(err)
}

// retire releases the worker's directories and memory, and takes its thread out of the
// volume.
func (w *worker) retire() {
	w.releaseParent()
	w.closeVisited()
	w.buf, w.ordered = nil, nil
	w.chunk.Store(nil)
	w.io.Enter(w.proc.Cwd)
}

// alone labels one entry outside the pool.
func (w *worker) alone(t xattrio.Target, d *dir) outcome {
	// Which of its two calls is under way is not told: they are alike.
	w.m.activity.At(w.io.Writes(t).String(), d.path(t.String()))
	defer w.m.activity.At("", "")
	return w.label(t, d)
}
