// SPDX-License-Identifier: Apache-2.0

package order

import "sync"

const (
	// windows of a walk at a time; where they are in use, the directory is labelled
	// as it lies.
	windows = 2
	// windowBudget is for some 75,000 names of 32 bytes, a million of which are
	// read within 3 % of the time that one order of them all takes.
	windowBudget = 3 << 20
)

// Gathering is memory, and the directory D whose entries are in it.
type Gathering[D any] struct {
	Dir  D
	From int64 // where in the directory a reading begins
	*Plan
	reading

	Stretches int  // of a reading, at most
	taken     bool // the mutex of the Memory guards it
}

// Memory is what a walk has to put directories in order, and the directories that wait
// for it. One is gathered whole at a time, so that the budget holds for the walk.
type Memory[D any] struct {
	mu      sync.Mutex
	queue   []queued[D]
	whole   Gathering[D]
	windows [windows]Gathering[D]
}

// queued is a directory, and where its rest begins.
type queued[D any] struct {
	dir  D
	from int64
	room Room
}

// Queue has d, from a position on, wait for its turn to be gathered whole.
func (m *Memory[D]) Queue(d D, from int64, room Room) {
	m.mu.Lock()
	m.queue = append(m.queue, queued[D]{d, from, room})
	m.mu.Unlock()
}

// Next lends the memory for the directory that was queued last, which is the most likely
// to be open. It is nil if there is none, or another is gathered.
func (m *Memory[D]) Next() *Gathering[D] {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := len(m.queue) - 1
	if m.whole.taken || last < 0 {
		return nil
	}
	q := m.queue[last]
	m.queue = m.queue[:last]
	return m.whole.take(q.dir, q.from, q.room)
}

// Window lends memory for a part of d. It is nil if all is in use.
func (m *Memory[D]) Window(d D, budget int) *Gathering[D] {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.windows {
		if g := &m.windows[i]; !g.taken {
			return g.take(d, 0, Room{Budget: min(windowBudget, budget)})
		}
	}
	return nil
}

func (g *Gathering[D]) take(d D, from int64, room Room) *Gathering[D] {
	if g.Plan == nil || g.budget < room.Budget {
		g.Plan = NewPlan(room.Budget)
	}
	g.Begin()
	g.Dir, g.From, g.Stretches, g.taken = d, from, room.Stretches, true
	return g
}

// Free takes the memory back, and returns the directory.
func (m *Memory[D]) Free(g *Gathering[D]) D {
	m.mu.Lock()
	defer m.mu.Unlock()
	g.taken = false
	return g.Dir
}

// Clear lets go of the memory, and has the directories released whose gathering a stopped
// walk left. Those that wait are the caller's.
func (m *Memory[D]) Clear(release func(D)) {
	letGo := func(g *Gathering[D]) {
		if g.taken {
			release(g.Dir)
		}
		g.Plan, g.taken = nil, false
	}
	letGo(&m.whole)
	for i := range m.windows {
		letGo(&m.windows[i])
	}
	m.queue = nil
}
