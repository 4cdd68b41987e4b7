// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"runtime"
	"testing"
)

// TestWorkers: where calls wait for a server, more of them wait at once, unless
// the caller says how many.
func TestWorkers(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	for _, test := range []struct {
		threads int
		served  bool
		want    int
	}{
		{0, false, cores},
		{0, true, max(cores, waiting)},
		{3, false, 3},
		{3, true, 3},
	} {
		r := &run{o: Options{Threads: test.threads}}
		if got := r.size(&mount{served: test.served}); got != test.want {
			t.Errorf("%+v: %d workers", test, got)
		}
	}
}
