// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"strings"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
)

// Dir is a directory of the walk, with the walk's Note of it. Children point to their
// parents, so a Dir lives as long as anything beneath it is under way.
//
// Who owns what: Parent, Name, Depth and the mount never change. The Note is the walk's
// own. All else belongs to the cache's mutex.
type Dir[N any] struct {
	Note   N
	Parent *Dir[N] // nil at the top of a mount
	Name   string  // with its NUL; "" at the top
	mount  *mounts.Mount

	Depth   int32 // how many levels below the top of its mount
	fd      int32 // -1 while it is closed
	pins    int32 // workers in it, gatherings of it, and a rest that waits: the descriptor stays
	pending int32 // items that will need it: better kept open
	// While it is closed and wanted: what it was, so that the directory
	// found again by name is known to be the same. Nothing is known of one
	// that was closed for good; it may lie on the way to one that is wanted.
	was mounts.ID
	// The list of open directories with no worker in them, oldest first.
	newer, older *Dir[N]

	shared  bool // others may know of it; else the cache's mutex is not needed
	spoiled bool
}

// Top is the top of m, which is open as fd and is never closed by the cache.
func Top[N any](m *mounts.Mount, fd int, n N) *Dir[N] {
	return &Dir[N]{Note: n, mount: m, fd: int32(fd), shared: true}
}

// FD is the descriptor of a directory that the caller is in.
func (d *Dir[N]) FD() int { return int(d.fd) }

// pathMost is how many bytes of names a path in a message has, which is as long as a
// path may be that the kernel takes.
const pathMost = 4096

// Path is for messages only; the walk never looks one up. In a deep tree it is the
// top, "…", and the last pathMost bytes: the owner of the tree chooses its depth, so
// neither the length nor the work for it may grow with that.
func (d *Dir[N]) Path(name string) string {
	var parts []string
	size := len(name)
	if name != "" {
		parts = append(parts, name)
	}
	for ; d.Parent != nil; d = d.Parent {
		if size += len(d.Name); size > pathMost {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, d.Name[:len(d.Name)-1])
	}
	var b strings.Builder
	b.WriteString(strings.TrimRight(d.mount.Path, "/"))
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteByte('/')
		b.WriteString(parts[i])
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// child is the directory name, with its NUL, in d. No worker is in it.
func (d *Dir[N]) child(name string, fd int) *Dir[N] {
	return &Dir[N]{Parent: d, mount: d.mount, Name: name, Depth: d.Depth + 1, fd: int32(fd)}
}

// Spoiled says whether not all entries of d could be read. No worker is in d.
func (d *Dir[N]) Spoiled() bool { return d.spoiled }
