// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fastlabel/fastlabel/internal/budget"
)

// Probes bounds the calls that take microseconds, and so have no share and no context.
// On a filesystem that does not answer each keeps a thread and some descriptors until
// it does.
//
// So probesAtOnce of them may be under way. One that takes a second leaves its place to
// another, and counts as hung until it returns. While probesHung calls for one path hang
// a further one for it fails at once, and while manyProbesHung hang each does. Which
// filesystem a path is on cannot be asked: that call hangs too.
type Probes struct {
	b      *budget.Budget
	files  func() int // the descriptors of the process
	refuse func(hung []Call, cause error) error
	places chan struct{} // of calls that have not taken a second

	mu   sync.Mutex
	hung map[Call]int // the others
	all  int          // of them
}

const (
	// probesAtOnce is also how many more may hang of the calls for one path in a second.
	probesAtOnce = 16
	probesHung   = 4
	// manyProbesHung are few beside the 10,000 threads of Go's runtime.
	manyProbesHung = 256
	// filesPerProbe are two of /proc and that of the root.
	filesPerProbe = 3
)

// NewProbes is for calls whose descriptors b counts while they hang, of files.
func NewProbes(b *budget.Budget, files func() int, refuse func(hung []Call, cause error) error) *Probes {
	return &Probes{b: b, files: files, refuse: refuse, places: make(chan struct{}, probesAtOnce), hung: make(map[Call]int)}
}

// Ask makes call, which is f, unless too many hang.
func (p *Probes) Ask(call Call, f func() error) error {
	p.places <- struct{}{}
	if hung, n := p.tooMany(call); n > 0 {
		<-p.places
		return p.refuse(hung, fmt.Errorf("%d earlier calls have not returned", n))
	}
	late := time.AfterFunc(Limit, func() {
		p.hangs(call, 1)
		<-p.places
	})
	defer func() {
		if late.Stop() {
			<-p.places
		} else {
			p.hangs(call, -1) // perhaps before the other is counted
		}
	}()
	return f()
}

// hangs counts n calls more as hung, and their descriptors with those of runs.
func (p *Probes) hangs(call Call, n int) {
	p.mu.Lock()
	p.all += n
	if p.hung[call] += n; p.hung[call] == 0 {
		delete(p.hung, call)
	}
	p.mu.Unlock()
	p.b.AddOpen(n * filesPerProbe)
}

// tooMany returns the calls that hang, and their number, if they are too many for another one.
func (p *Probes) tooMany(call Call) (hung []Call, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.hung[call]; n >= probesHung {
		return []Call{call}, n
	}
	if p.all >= min(manyProbesHung, p.files()/(2*filesPerProbe)) {
		byPath := func(a, b Call) int { return strings.Compare(a.Path, b.Path) }
		return slices.SortedFunc(maps.Keys(p.hung), byPath), p.all
	}
	return nil, 0
}
