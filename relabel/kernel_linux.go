// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// capabilities is what this kernel lets us do, found out once for a run.
type capabilities struct {
	way     xattrio.Way // the best inside a clone
	clones  bool        // private clones are worth a try
	openat2 bool
	sorting sorting

	// For tests: every filesystem counts as one with a server, and the tuner
	// looks so often and finds the processors idle.
	served   bool
	restless time.Duration
}

// probe asks the kernel. It remembers only what cannot be done.
func probe() capabilities {
	return capabilities{way: xattrio.Fastest(), clones: true, openat2: sys.HasOpenat2(), sorting: ample}
}
