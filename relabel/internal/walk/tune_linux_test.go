// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/tune"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestTunes: while workers come and go all the time, all is labelled and counted
// once. They do for a second tuner, which looks often and finds the processors idle.
func TestTunes(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	root := filepath.Join(treetest.Fresh(t, "tmpfs"), "tree")
	treetest.Build(t, root, treetest.Text(t, "dir .\ndir d%d x40\nfile d7/f%d x9000\nfile d9/g%d x3000\n"))
	const all = 40 + 9000 + 3000
	for i, way := range slices.Compact([]xattrio.Way{xattrio.ByDescriptor, xattrio.ByName, xattrio.Fastest()}) {
		label := func(string) string { return fmt.Sprintf("system_u:object_r:container_file_t:s0:c1,c%d", 2+i) }
		for _, outcome := range []Outcome{Written, Right} {
			m := enclosed(t, root)
			done := make(chan struct{})
			var tuning sync.WaitGroup
			var k *Walk
			begin := sync.OnceFunc(func() { // there are workers now
				tuning.Go(func() {
					tune.Tuner{Cores: k.begin, Most: k.most, Workers: k.begin}.Tune(tuned{k}, 50*time.Microsecond, func() (time.Duration, int64) { return 0, 0 }, done)
				})
			})
			k = New(&Job{
				Top:    &Want{label(root), &numbered{root, label, func(string) { begin() }}},
				Kernel: Kernel{Way: way},
				Events: Events{Failed: func(path, op string, err error) { t.Errorf("%s: %s %s: %v", way, op, path, err) }},
			}, m, &Top{FD: m.Top, Outcome: Skipped}, nil)
			err := k.Run(t.Context())
			close(done)
			tuning.Wait()
			if got := k.Tally(); err != nil || got.Seen != all || got.Of[outcome] != all {
				t.Errorf("%s: %+v, %v", way, got, err)
			}
		}
		for path, has := range treetest.Read(t, root) {
			if path != "." && has != label(path) {
				t.Errorf("%s: %s has %q", way, path, has)
			}
		}
	}
}
