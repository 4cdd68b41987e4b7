// SPDX-License-Identifier: Apache-2.0

package relabel

import "github.com/fastlabel/fastlabel/relabel/internal/sys"

// reserve is how many descriptors are left to the rest of the process, at
// least; of a high limit an eighth is.
const reserve = 8

// filesForAll is how many descriptors all runs may have together.
func filesForAll() int {
	files := int(min(sys.OpenFiles(), 1<<20))
	return files - max(reserve, files/8)
}
