// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"runtime"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/tune"
)

// TestWorkers: where calls wait for a server, more of them wait at once, unless
// the caller says how many.
func TestWorkers(t *testing.T) {
	cores := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	for _, test := range []struct {
		threads    int
		served     bool
		want, most int
	}{
		{0, false, cores, max(cores, tune.MostWorkers)},
		{0, true, max(cores, waiting), max(cores, waiting)},
		{3, false, 3, 3},
		{3, true, 3, 3},
	} {
		k := &Walk{Job: &Job{Workers: test.threads}, m: &mounts.Mount{Served: test.served}}
		if got, most := k.size(); got != test.want || most != test.most {
			t.Errorf("%+v: %d workers, %d at most", test, got, most)
		}
	}
}
