// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"sync"
	"sync/atomic"

	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
)

// position shows other goroutines where a worker is. The worker alone changes it.
type position struct {
	walk *Walk

	dir    atomic.Pointer[directory] // nil while it has nothing to do
	name   atomic.Pointer[byte]      // of the entry in dir
	call   atomic.Uint32             // an xattrio.SyscallKind
	step   atomic.Uint32             // of a visit
	moves  atomic.Uint64             // items done, readings of a directory, and pauses
	paused atomic.Bool
	seen   run.Seen

	mu    sync.Mutex
	tally Tally // as it was when the row began; mu guards it
	row   row   // mu guards its loading
}

// at reports where the worker is.
func (p *position) at(d *directory, name *byte) {
	p.dir.Store(d)
	p.name.Store(name)
}

// now reports which call comes next, if it is another than the last.
func (p *position) now(k xattrio.SyscallKind) {
	if p.call.Load() != uint32(k) {
		p.call.Store(uint32(k))
	}
}

// load loads the next row. t was counted before it.
func (p *position) load(t Tally, entries []byte, off, most int, special map[uint64]bool) (next int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally = t
	return p.row.load(entries, off, most, special)
}

// done ends an item.
func (p *position) done(t Tally) {
	p.dir.Store(nil)
	p.moves.Add(1)
	p.mu.Lock()
	p.tally = t
	p.mu.Unlock()
}

// pause is for a worker that calls the caller's code or sorts: it is not replaced.
func (p *position) pause(what func()) {
	p.paused.Store(true)
	what()
	p.moves.Add(1) // first: where its place is compared, it has moved
	p.paused.Store(false)
}

// counted returns what was counted before the row, and how many entries of the row are done.
func (p *position) counted() (t Tally, inRow int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir.Load() != nil {
		inRow, _ = p.row.names.Calling()
	}
	return p.tally, max(0, inRow)
}

// A position is a run.Watched.

func (p *position) Seen() *run.Seen { return &p.seen }
func (p *position) Busy() bool      { return p.dir.Load() != nil && !p.paused.Load() } // else it waits for work
func (p *position) Replace() bool   { return p.walk.add(false) }

func (p *position) Place() any {
	return [5]any{p.moves.Load(), p.name.Load(), p.call.Load(), p.step.Load(), p.row.names.Step.Load()}
}

func (p *position) Call() run.Call {
	call, name := xattrio.SyscallKind(p.call.Load()), p.name.Load()
	switch call {
	case xattrio.Row:
		p.mu.Lock()
		call, name = p.row.call()
		p.mu.Unlock()
	case xattrio.Visit:
		call = xattrio.Visits(sys.Step(p.step.Load()))
	}
	path := p.walk.mount.Path
	if d := p.dir.Load(); d != nil {
		path = d.Path(sys.Text(name))
	}
	return run.Call{Call: call.String(), Path: path}
}
