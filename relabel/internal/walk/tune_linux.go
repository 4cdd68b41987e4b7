// SPDX-License-Identifier: Apache-2.0

package walk

import "github.com/fastlabel/fastlabel/relabel/internal/tune"

// tuned is a walk to package tune.
type tuned struct{ *Walk }

// Entries counts those of the row at hand too: on a slow server a row takes longer than a
// window.
func (k tuned) Entries() (n int64) {
	for w := range k.all {
		n += w.passed.Load()
		if c := w.chunk.Load(); c != nil && w.in.Load() != nil {
			at, _ := c.Row.Calling()
			n += int64(max(0, at))
		}
	}
	return n
}

func (k tuned) Steady() bool {
	for w := range k.all {
		if w.seen.HeldUp.Load() {
			return false
		}
	}
	return k.handle() != nil
}

// Most is smaller while other runs of the process are at work, which need workers too.
func (k tuned) Most() int {
	if k.share.Alone() {
		return k.most
	}
	return min(k.most, max(k.begin, tune.MostWorkers))
}

func (k tuned) Relieve() bool      { return k.share.More() && k.add(k.handle()) }
func (k tuned) Shed(n int)         { k.handle().Shed(n) }
func (k tuned) ReadCold(cold bool) { k.ahead.SetCold(cold) }
