// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"github.com/fastlabel/fastlabel/internal/budget"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/sys"
)

const (
	// defaultWorkers are those of the whole process: the 256 that one run on a filesystem
	// with a server may have, and a fifth, which it leaves to others. Go's runtime ends a
	// process that has 10,000 threads.
	defaultWorkers = 320
	// reserve descriptors at least are left to the rest of the process; of a high limit an
	// eighth is.
	reserve = 8
)

// process is the budget of all runs, and probing for calls of Inspect and a Group's for a volume.
var (
	process = budget.New(defaultWorkers, filesForAll)
	probing = run.NewProbes(process, filesForAll, hung)
)

// filesForAll returns the number of descriptors that all runs may have together.
func filesForAll() int {
	files := int(min(sys.OpenFiles(), 1<<20))
	return files - max(reserve, files/8)
}

// SetMaxWorkers bounds the workers of all runs of the process together: 320, unless it is called.
// n below 1 stands for that too. A call that does not return costs a thread beside them.
func SetMaxWorkers(n int) {
	if n < 1 {
		n = defaultWorkers
	}
	process.SetWorkers(n)
}
