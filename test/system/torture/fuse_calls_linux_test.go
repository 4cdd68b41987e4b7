// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

func (f *inheriting) Lookup(cancel <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if !f.wait("lookup", name, cancel) {
		return fuse.EINTR
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.nodes[in.NodeId].entries[name]
	if e == nil {
		return fuse.ENOENT
	}
	f.entered(e.node, out)
	return fuse.OK
}

func (f *inheriting) Forget(ino, lookups uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes[ino]; n != nil {
		if n.lookups -= min(lookups, n.lookups); n.lookups == 0 && n.gone {
			delete(f.nodes, ino)
		}
	}
}

func (f *inheriting) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	n := f.of("getattr", in.NodeId, cancel)
	if n == nil {
		return fuse.EINTR
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n.attr(&out.Attr)
	return fuse.OK
}

func (f *inheriting) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[in.NodeId]
	if mode, is := in.GetMode(); is {
		n.mode = n.mode&unix.S_IFMT | mode&0o7777
	}
	if mtime, is := in.GetMTime(); is {
		n.mtime = mtime
	}
	n.ctime = time.Now()
	n.attr(&out.Attr)
	return fuse.OK
}

func (f *inheriting) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return f.create(&in.InHeader, name, unix.S_IFDIR|in.Mode&0o7777, "", out)
}

func (f *inheriting) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return f.create(&in.InHeader, name, in.Mode, "", out)
}

func (f *inheriting) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return f.create(&in.InHeader, name, unix.S_IFREG|in.Mode&0o7777, "", &out.EntryOut)
}

func (f *inheriting) Symlink(_ <-chan struct{}, in *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	return f.create(in, name, unix.S_IFLNK|0o777, target, out)
}

func (f *inheriting) Readlink(_ <-chan struct{}, in *fuse.InHeader) ([]byte, fuse.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []byte(f.nodes[in.NodeId].target), fuse.OK
}

func (f *inheriting) Unlink(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return f.remove(in, name, false)
}

func (f *inheriting) Rmdir(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return f.remove(in, name, true)
}

func (f *inheriting) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, into := f.nodes[in.NodeId], f.nodes[in.Newdir]
	e := dir.entries[from]
	switch {
	case e == nil || into.gone:
		return fuse.ENOENT
	case in.Flags != 0:
		return fuse.EINVAL
	case into.entries[to] != nil:
		return fuse.Status(unix.EEXIST) // nobody here replaces anything
	}
	dir.take(from)
	into.put(to, e.node)
	return fuse.OK
}

func (f *inheriting) GetXAttr(cancel <-chan struct{}, in *fuse.InHeader, attr string, dest []byte) (uint32, fuse.Status) {
	n := f.of("getxattr", in.NodeId, cancel)
	if n == nil {
		return 0, fuse.EINTR
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case attr != treetest.Attr || n.label == nil:
		return 0, fuse.ENOATTR
	case len(dest) < len(n.label):
		return uint32(len(n.label)), fuse.ERANGE
	}
	return uint32(copy(dest, n.label)), fuse.OK
}

func (f *inheriting) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, attr string, value []byte) fuse.Status {
	n := f.of("setxattr", in.NodeId, cancel)
	if n == nil {
		return fuse.EINTR
	}
	if attr != treetest.Attr {
		return fuse.Status(syscall.ENOTSUP)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n.label, n.ctime = append([]byte{}, value...), time.Now()
	if n.ino == f.watched {
		if f.to = f.created; f.from < 0 {
			f.from = f.created
		}
	}
	return fuse.OK
}

func (f *inheriting) Open(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status { return fuse.OK }

func (f *inheriting) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	if f.of("opendir", in.NodeId, cancel) == nil {
		return fuse.EINTR
	}
	return fuse.OK
}

func (f *inheriting) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	n := f.of("readdir", in.NodeId, cancel)
	if n == nil {
		return fuse.EINTR
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at, _ := slices.BinarySearchFunc(n.order, in.Offset+1, func(e *entry, p uint64) int { return int(e.position) - int(p) })
	for _, e := range n.order[at:] {
		if !e.gone && !out.AddDirEntry(fuse.DirEntry{Name: e.name, Ino: e.ino, Mode: e.mode, Off: e.position}) {
			break
		}
	}
	return fuse.OK
}

func (f *inheriting) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if f.of("fsync", in.NodeId, cancel) == nil {
		return fuse.EINTR
	}
	return fuse.OK
}

func (f *inheriting) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if f.of("fsync", in.NodeId, cancel) == nil {
		return fuse.EINTR
	}
	return fuse.OK
}

func (f *inheriting) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

func (f *inheriting) StatFs(cancel <-chan struct{}, in *fuse.InHeader, _ *fuse.StatfsOut) fuse.Status {
	if f.of("statfs", in.NodeId, cancel) == nil {
		return fuse.EINTR
	}
	return fuse.OK
}
