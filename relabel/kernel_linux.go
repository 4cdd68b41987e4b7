// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"github.com/fastlabel/fastlabel/relabel/internal/order"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// capabilities is what this kernel lets us do, found out once for a run.
type capabilities struct {
	kernel  walk.Kernel
	clones  bool // private clones are worth a try
	openat2 bool

	served bool // for tests: every filesystem counts as one with a server
	stale  bool // for tests: and as NFS, of which labels are told from memory
}

// probe asks the kernel. It remembers only what cannot be done.
func probe() capabilities {
	return capabilities{kernel: walk.Kernel{Way: xattrio.Fastest(), Sorting: order.Ample}, clones: true, openat2: sys.HasOpenat2()}
}

// reserve is how many descriptors are left to the rest of the process, at
// least; of a high limit an eighth is.
const reserve = 8

// filesForAll is how many descriptors all runs may have together.
func filesForAll() int {
	files := int(min(sys.OpenFiles(), 1<<20))
	return files - max(reserve, files/8)
}
