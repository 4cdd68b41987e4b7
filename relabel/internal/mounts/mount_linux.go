// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"strings"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// ID tells a file from every other, however it is spelled or mounted.
type ID struct{ Dev, Ino uint64 }

// IDOf is the ID of the file that st is of.
func IDOf(st sys.Stat) ID { return ID{st.Dev, st.Ino} }

// Mount is one mount of the tree, beneath the file or directory At.
type Mount struct {
	Path string   // of At as the caller would say it, for messages
	Real string   // and as mountinfo has it; see Told
	Stat sys.Stat // of At, with the mount's id
	At   int      // an O_PATH descriptor

	proc *Proc
}

// Locate finds out which mount the O_PATH descriptor at stands in. The string is the
// call that failed.
func (p *Proc) Locate(at int, path string) (*Mount, string, sys.Errno) {
	st, e := sys.Fstatx(at)
	if e == 0 && st.Mount == 0 {
		st.Mount, e = p.MountOf(at)
	}
	if e != 0 {
		return nil, "statx", e
	}
	return &Mount{Path: path, Stat: st, At: at, proc: p}, "", 0
}

// Close closes At.
func (m *Mount) Close() { sys.Close(m.At) }

// Reach names the entry at path beneath dir by an O_PATH descriptor, one name
// at a time, following no link. It crosses mounts, where there are any, and
// tells which files it passed, the last included.
func Reach(dir int, path string) (int, []ID, sys.Errno) {
	at := dir
	var passed []ID
	for name := range strings.SplitSeq(path, "/") {
		next, e := sys.Openat(at, sys.Cname(name), sys.OpenPath, 0)
		if at != dir {
			sys.Close(at)
		}
		if e != 0 {
			return -1, nil, e
		}
		at = next
		st, e := sys.Fstatx(at)
		if e != 0 {
			sys.Close(at)
			return -1, nil, e
		}
		passed = append(passed, IDOf(st))
	}
	return at, passed, 0
}
