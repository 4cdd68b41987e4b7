// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"strings"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// upper is the upper layer of an overlayfs. To set the label of a file that
// lies in a lower layer alone, overlayfs first copies it up: whole, unless it
// is mounted with metacopy=on (Documentation/filesystems/overlayfs.rst).
type upper struct {
	fd   int    // the layer's directory; -1 if it cannot be looked into from here
	rest string // the path of the mount's top, as it is walked, in the layer
}

// expectCopies says so before it is done. A dry run is made ready to count.
func (r *run) expectCopies(m *mount) {
	info := r.proc.mount(m.id)
	if info == nil || info.FSType != "overlay" || mountinfo.Value(info.Super, "metacopy") == "on" {
		return
	}
	if !r.o.DryRun {
		r.note("%s is on overlayfs, which copies a file of a lower layer up whole to set its label; a dry run tells how many bytes", m.path)
		return
	}
	m.upper = &upper{fd: -1, rest: strings.TrimPrefix(m.real, strings.TrimSuffix(info.Point, "/"))}
	if layer := mountinfo.Value(info.Super, "upperdir"); layer != "" {
		if fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(layer), sys.OpenPath, 0); e == 0 {
			m.upper.fd = fd
		}
	}
}

// copyUp is how many bytes overlayfs would copy to give t its label.
func (w *worker) copyUp(t target, d *dir) int64 {
	up := w.m.upper
	if up == nil || t.name == nil && !t.pinned {
		return 0
	}
	st, e := t.stat()
	if e != 0 || st.Kind != sys.KindFile {
		return 0
	}
	path := up.rest + strings.TrimPrefix(d.path(t.String()), strings.TrimRight(w.m.path, "/"))
	if fd, _, e := w.m.reach(up.fd, strings.TrimPrefix(path, "/")); e == 0 {
		sys.Close(fd)
		return 0 // it is there already
	}
	return st.Size
}
