// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/watch"
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
	b      *Budget
	places chan struct{} // of calls that have not taken a second

	mu   sync.Mutex
	hung map[string]int // the others, by path
	all  int            // of them
}

const (
	// probesAtOnce is also how many more may hang of the calls for one path in a second.
	probesAtOnce = 16
	probesHung   = 4
	// manyProbesHung are few beside the 10,000 threads of Go's runtime. Fewer may hang
	// where they would have more than half of the descriptors.
	manyProbesHung = 256
	// filesPerProbe are two of /proc and that of the root.
	filesPerProbe = 3
)

// HangError says that too many calls hang for another one.
type HangError struct {
	Calls int
	Paths []string // for which they were made
}

func (e *HangError) Error() string {
	return fmt.Sprintf("%d earlier calls have not returned", e.Calls)
}

// NewProbes is for calls whose descriptors b counts while they hang.
func NewProbes(b *Budget) *Probes {
	return &Probes{b: b, places: make(chan struct{}, probesAtOnce), hung: make(map[string]int)}
}

// Ask makes a call for path, or is a *HangError.
func (p *Probes) Ask(path string, call func() error) error {
	p.places <- struct{}{}
	if err := p.tooMany(path); err != nil {
		<-p.places
		return err
	}
	late := time.AfterFunc(watch.Limit, func() {
		p.hangs(path, 1)
		<-p.places
	})
	defer func() {
		if late.Stop() {
			<-p.places
		} else {
			p.hangs(path, -1) // perhaps before the other is counted
		}
	}()
	return call()
}

// hangs counts n calls of path more as hung, and their descriptors with those of runs.
func (p *Probes) hangs(path string, n int) {
	p.mu.Lock()
	p.all += n
	if p.hung[path] += n; p.hung[path] == 0 {
		delete(p.hung, path)
	}
	p.mu.Unlock()
	p.b.Holds(n * filesPerProbe)
}

// tooMany names path if too many of its calls hang, or all paths of which some do.
func (p *Probes) tooMany(path string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.hung[path]; n >= probesHung {
		return &HangError{n, []string{path}}
	}
	if p.all > 0 && p.all >= min(manyProbesHung, p.b.files()/(2*filesPerProbe)) {
		return &HangError{p.all, slices.Sorted(maps.Keys(p.hung))}
	}
	return nil
}
