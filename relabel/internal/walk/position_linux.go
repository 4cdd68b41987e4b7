// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"sync/atomic"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/watch"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// position is where a worker is. The worker alone writes it; any goroutine may read it,
// to tell how far a run is, or where it hangs.
type position struct {
	in     atomic.Pointer[Dir] // nil while it has nothing to do
	name   atomic.Pointer[byte]
	step   atomic.Uint32 // of a visit
	doing  atomic.Uint32 // an xattrio.SyscallKind
	moves  atomic.Uint64 // items worked on, readings of a directory, and pauses
	paused atomic.Bool   // see unwatched
	seen   watch.Seen    // of the worker
}

// at tells where the worker is.
func (p *position) at(d *Dir, name *byte) {
	p.in.Store(d)
	p.name.Store(name)
}

// now says which call comes next, if it is another than the last.
func (p *position) now(k xattrio.SyscallKind) {
	if p.doing.Load() != uint32(k) {
		p.doing.Store(uint32(k))
	}
}

// watched is a worker as it is looked at.
type watched struct{ *worker }

func (w watched) Seen() *watch.Seen { return &w.seen }
func (w watched) Busy() bool        { return w.in.Load() != nil && !w.paused.Load() } // else it waits for work
func (w watched) Replace() bool     { return w.pool != nil && w.relieve() }

func (w watched) Place() any {
	return [5]any{w.moves.Load(), w.name.Load(), w.doing.Load(), w.step.Load(), w.row.names.Step.Load()}
}

func (w watched) Call() watch.Call {
	call, name := xattrio.SyscallKind(w.doing.Load()), w.name.Load()
	switch call {
	case xattrio.Row:
		call, name = w.sweepsAt()
	case xattrio.Visit:
		call = xattrio.Visits(sys.Step(w.step.Load()))
	}
	path := w.m.Path
	if d := w.in.Load(); d != nil {
		path = d.Path(xattrio.Target{Name: name}.String())
	}
	return watch.Call{Call: call.String(), Path: path}
}

// unwatched is for a worker that calls the caller's code, waits to, or sorts. It is in no
// system call during that, and is not replaced.
func (w *worker) unwatched(what func()) {
	w.paused.Store(true)
	what()
	w.moves.Add(1) // first: where its place is compared, it has moved
	w.paused.Store(false)
}
