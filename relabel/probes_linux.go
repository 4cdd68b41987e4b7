// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/watch"
)

// Inspect takes microseconds, waits for no share and has no context. On a filesystem that does not answer each call keeps a thread and some
// descriptors until it does.
//
// So probesAtOnce of them may be under way. One that takes a second leaves its place to
// another, and counts as hung until it returns. While probesHung calls for one path hang
// a further one for it fails at once, and while manyProbesHung hang each does. Which
// filesystem a path is on cannot be asked: that call hangs too.

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

var probing = probes{places: make(chan struct{}, probesAtOnce), hung: make(map[string]int)}

type probes struct {
	places chan struct{} // of calls that have not taken a second

	mu   sync.Mutex
	hung map[string]int // the others, by path
	all  int            // of them
}

// ask makes the call named so for path, unless too many hang.
func (a *probes) ask(call, path string, what func() error) error {
	a.places <- struct{}{}
	if err := a.tooMany(call, path); err != nil {
		<-a.places
		return err
	}
	late := time.AfterFunc(watch.Limit, func() {
		a.hangs(path, 1)
		<-a.places
	})
	defer func() {
		if late.Stop() {
			<-a.places
		} else {
			a.hangs(path, -1) // perhaps before the other is counted
		}
	}()
	return what()
}

// hangs counts n calls of path more as hung, and their descriptors with those of runs.
func (a *probes) hangs(path string, n int) {
	a.mu.Lock()
	a.all += n
	if a.hung[path] += n; a.hung[path] == 0 {
		delete(a.hung, path)
	}
	a.mu.Unlock()
	process.Holds(n * filesPerProbe)
}

// tooMany is nil, a *HungError that names path if too many of its calls hang, or one that
// names all paths of which some do.
func (a *probes) tooMany(call, path string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, paths := a.hung[path], []string{path}
	if n < probesHung {
		if a.all == 0 || a.all < min(manyProbesHung, filesForAll()/(2*filesPerProbe)) {
			return nil
		}
		n, paths = a.all, nil
		for p := range a.hung {
			paths = append(paths, p)
		}
		slices.Sort(paths)
	}
	err := &HungError{Cause: fmt.Errorf("%d earlier calls have not returned", n)}
	for _, p := range paths {
		err.Calls = append(err.Calls, HungCall{call, p})
	}
	return err
}
