// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/internal/order"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// TestReaders: readers come and go; one of them is the last, and none joins after it.
func TestReaders(t *testing.T) {
	const stretches = 8
	var g sortedDir
	for range 200 {
		g.batch = g.batch.Begin(1 << 20)
		g.batch.Next()
		var all sync.WaitGroup
		var last, kept atomic.Int32
		read := func() {
			for s, ok := g.stretch(); ok; s, ok = g.stretch() {
				record := sys.AppendRecord(nil, uint64(s.At>>40), sys.KindFile, []byte("n"))
				if fits, err := g.add(record); !fits || err != nil {
					t.Error(fits, err)
				}
				kept.Add(1)
			}
			if g.leave() {
				last.Add(1)
				g.batch.Sort()
				all := g.batch.Slice(0)
				if n := len(names(t, all.Next(make([]byte, bufferSize)))); n != stretches {
					t.Errorf("%d were kept when the last left", n)
				}
			}
		}
		g.left, g.reading = order.Divide(0, stretches), 1
		for range 3 {
			if !g.join() {
				t.Fatal("nothing is left before anything was read")
			}
		}
		for range 3 {
			all.Go(read)
		}
		read()
		all.Wait()
		if last.Load() != 1 || kept.Load() != stretches || g.join() {
			t.Fatalf("%d were the last, %d were read", last.Load(), kept.Load())
		}
	}
}
