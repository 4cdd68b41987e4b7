// SPDX-License-Identifier: Apache-2.0

package relabel

import "slices"

// expectCopies says before the first change what setting labels costs on overlayfs.
// It copies a file of a lower layer up first: whole, unless it is mounted with
// metacopy=on (Documentation/filesystems/overlayfs.rst).
func (r *run) expectCopies(m *mount) {
	info := r.proc.ByID(m.Stat.Mount)
	if info != nil && info.FSType == "overlay" && !r.o.inner.check && !slices.Contains(info.Super, "metacopy=on") {
		r.Note("%s is on overlayfs, which copies a file of a lower layer up whole to set its label", m.Path)
	}
}
