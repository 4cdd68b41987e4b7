// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	attribute = "security.selinux"
	fill      = "user.slowfs.fill"
	wrong     = "user.slowfs.wrong."
)

// remember is how many seconds the kernel may remember a name and its
// attributes, as NFS does for some.
const remember = 1

// tree is the filesystem. It never changes but for the labels, so that
// requests share nothing and wait for nobody.
//
// Inode 1 is the root, then come the directories, then the files: those of
// one directory follow each other.
type tree struct {
	fuse.RawFileSystem
	delay  time.Duration
	dirs   int
	files  int
	labels []atomic.Pointer[string] // by inode; 0 is unused
}

func newTree(delay time.Duration, files, dirs int) *tree {
	t := &tree{
		RawFileSystem: fuse.NewDefaultRawFileSystem(), delay: delay, dirs: dirs, files: files,
		labels: make([]atomic.Pointer[string], 2+dirs+files),
	}
	t.fill("unlabeled")
	return t
}

func (t *tree) fill(label string) {
	for i := range t.labels {
		t.labels[i].Store(&label)
	}
}

func (t *tree) wrong(label string) int {
	n := 0
	for i := range t.labels[1:] {
		if *t.labels[i+1].Load() != label {
			n++
		}
	}
	return n
}

// children is the inodes [from, to) of what a directory holds.
func (t *tree) children(ino int) (from, to int) {
	switch {
	case ino == 1:
		return 2, 2 + t.dirs
	case ino < 2+t.dirs:
		k := ino - 2
		return 2 + t.dirs + k*t.files/t.dirs, 2 + t.dirs + (k+1)*t.files/t.dirs
	}
	return 0, 0
}

func (t *tree) mode(ino int) uint32 {
	if ino < 2+t.dirs {
		return syscall.S_IFDIR | 0o755
	}
	return syscall.S_IFREG | 0o644
}

func (t *tree) attr(ino int, out *fuse.Attr) {
	*out = fuse.Attr{Ino: uint64(ino), Mode: t.mode(ino), Nlink: 1, Blksize: 4096}
}

// wait takes the time that a request takes, unless the caller gives up.
func (t *tree) wait(cancel <-chan struct{}) fuse.Status {
	if t.delay <= 0 {
		return fuse.OK
	}
	select {
	case <-time.After(t.delay):
		return fuse.OK
	case <-cancel:
		return fuse.EINTR
	}
}

func (t *tree) Lookup(cancel <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if s := t.wait(cancel); !s.Ok() {
		return s
	}
	from, to := t.children(int(in.NodeId))
	ino, err := strconv.Atoi(strings.TrimLeft(name, "n"))
	if err != nil || ino < from || ino >= to {
		return fuse.ENOENT
	}
	out.NodeId, out.Generation, out.EntryValid, out.AttrValid = uint64(ino), 1, remember, remember
	t.attr(ino, &out.Attr)
	return fuse.OK
}

func (t *tree) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	out.AttrValid = remember
	t.attr(int(in.NodeId), &out.Attr)
	return t.wait(cancel)
}

func (t *tree) OpenDir(cancel <-chan struct{}, _ *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	return t.wait(cancel)
}

func (t *tree) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	from, to := t.children(int(in.NodeId))
	for ino := from + int(in.Offset); ino < to; ino++ {
		e := fuse.DirEntry{Name: fmt.Sprintf("n%07d", ino), Ino: uint64(ino), Mode: t.mode(ino), Off: uint64(ino - from + 1)}
		if !out.AddDirEntry(e) {
			break
		}
	}
	return t.wait(cancel)
}

func (t *tree) FsyncDir(cancel <-chan struct{}, _ *fuse.FsyncIn) fuse.Status { return t.wait(cancel) }

func (t *tree) StatFs(cancel <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.NameLen = 4096, 255
	return t.wait(cancel)
}

func (t *tree) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, name string, value []byte) fuse.Status {
	label := strings.TrimRight(string(value), "\x00")
	switch {
	case name == fill && in.NodeId == 1:
		t.fill(label)
		return fuse.OK
	case name != attribute:
		return fuse.Status(syscall.ENOTSUP)
	}
	if s := t.wait(cancel); !s.Ok() {
		return s
	}
	t.labels[in.NodeId].Store(&label)
	return fuse.OK
}

func (t *tree) GetXAttr(cancel <-chan struct{}, in *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	value := ""
	if label, is := strings.CutPrefix(name, wrong); is && in.NodeId == 1 {
		value = strconv.Itoa(t.wrong(label))
	} else {
		if s := t.wait(cancel); !s.Ok() {
			return 0, s
		}
		if name != attribute {
			return 0, fuse.ENOATTR
		}
		value = *t.labels[in.NodeId].Load()
	}
	if len(dest) < len(value) {
		return uint32(len(value)), fuse.ERANGE
	}
	return uint32(copy(dest, value)), fuse.OK
}
