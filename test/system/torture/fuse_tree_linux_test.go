// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"slices"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// inheriting is a filesystem in memory in which a new entry gets the label that
// its directory has at that moment, as SELinux has it. The kernel holds the
// directory's lock over a creation and over a change of its label, here as on
// any filesystem, so that the one comes wholly before the other.
//
// A directory is read by a position that grows with each entry: a reader sees
// what was created behind its position, as on ext4 and tmpfs, and no snapshot.
//
// Calls of a kind can hang on entries of a name: see hang. The server then has
// taken the request and never answers. A deaf one does not heed the kernel's
// wish to interrupt it either, as if its own network were dead: not even
// SIGKILL ends the thread that waits. The other kind lets a signal end the
// call, as NFS lets a deadly one.
type inheriting struct {
	fuse.RawFileSystem
	valid uint64 // seconds that the kernel may remember names

	mu      sync.Mutex // all of the tree; never held while a call hangs
	nodes   map[uint64]*node
	last    uint64 // inode number
	created int64
	watched uint64 // whose changes of the label bracket the creations counted
	from    int64  // how many were created at the first
	to      int64  // and at the last

	gate sync.Mutex
	hung map[string]*snag // by "CALL NAME"
	held []string         // the calls that hang now
	calm chan struct{}    // closed when they are to go on
}

// snag is where calls hang.
type snag struct {
	nth  int // from which such call on
	deaf bool
}

// node is one file of any kind; it has one name.
type node struct {
	ino, lookups uint64
	name         string // "." for the root
	gone         bool
	mode         uint32
	target       string
	label        []byte // nil: none
	mtime, ctime time.Time
	entries      map[string]*entry
	order        []*entry // by position, with those that are gone
	position     uint64
}

type entry struct {
	*node
	name     string
	position uint64
	gone     bool
}

func newInheriting(valid time.Duration) *inheriting {
	f := &inheriting{
		RawFileSystem: fuse.NewDefaultRawFileSystem(), valid: uint64(valid.Seconds()),
		nodes: map[uint64]*node{}, hung: map[string]*snag{}, calm: make(chan struct{}),
	}
	f.node(".", unix.S_IFDIR|0o755)
	return f
}

// node makes a node. f is locked, or nobody else knows it.
func (f *inheriting) node(name string, mode uint32) *node {
	f.last++
	now := time.Now()
	n := &node{ino: f.last, name: name, mode: mode, mtime: now, ctime: now}
	if mode&unix.S_IFMT == unix.S_IFDIR {
		n.entries = map[string]*entry{}
	}
	f.nodes[n.ino] = n
	return n
}

// of gives the node of a request, which the kernel holds, after waiting where
// such a call is to hang; nil if it was interrupted then.
func (f *inheriting) of(call string, ino uint64, interrupted <-chan struct{}) *node {
	f.mu.Lock()
	n := f.nodes[ino]
	name := n.name
	f.mu.Unlock()
	if !f.wait(call, name, interrupted) {
		return nil
	}
	return n
}

// wait waits where calls are to hang, and says if the call is to go on.
func (f *inheriting) wait(call, name string, interrupted <-chan struct{}) bool {
	what := call + " " + name
	f.gate.Lock()
	s, calm := f.hung[what], f.calm
	if s == nil || s.nth > 1 {
		if s != nil {
			s.nth--
		}
		f.gate.Unlock()
		return true
	}
	f.held = append(f.held, what)
	if s.deaf {
		interrupted = nil
	}
	f.gate.Unlock()
	select {
	case <-calm:
		return true
	case <-interrupted:
		return false
	}
}

// hang makes calls on entries of that name hang; soothe lets them go on.
func (f *inheriting) hang(call, name string, s snag) {
	f.gate.Lock()
	defer f.gate.Unlock()
	f.hung[call+" "+name] = &s
}

func (f *inheriting) soothe() {
	f.gate.Lock()
	defer f.gate.Unlock()
	close(f.calm)
	f.calm, f.held, f.hung = make(chan struct{}), nil, map[string]*snag{}
}

func (f *inheriting) hanging() []string {
	f.gate.Lock()
	defer f.gate.Unlock()
	return slices.Clone(f.held)
}

func (n *node) attr(a *fuse.Attr) {
	*a = fuse.Attr{Ino: n.ino, Mode: n.mode, Nlink: 1, Blksize: 4096, Size: uint64(len(n.target))}
	a.SetTimes(nil, &n.mtime, &n.ctime)
}

// entered fills in the answer for a name that was found or made.
func (f *inheriting) entered(n *node, out *fuse.EntryOut) {
	n.lookups++
	out.NodeId, out.Generation, out.EntryValid = n.ino, 1, f.valid
	if n.entries == nil { // the times of directories tell something
		out.AttrValid = f.valid
	}
	n.attr(&out.Attr)
}

func (n *node) touch() {
	n.mtime = time.Now()
	n.ctime = n.mtime
}

func (n *node) put(name string, what *node) {
	n.position++
	e := &entry{node: what, name: name, position: n.position}
	what.name = name
	n.entries[name], n.order = e, append(n.order, e)
	n.touch()
}

func (n *node) take(name string) {
	n.entries[name].gone = true
	delete(n.entries, name)
	if len(n.order) > 64+2*len(n.entries) {
		n.order = slices.DeleteFunc(n.order, func(e *entry) bool { return e.gone })
	}
	n.touch()
}

// create makes an entry, and it inherits.
func (f *inheriting) create(in *fuse.InHeader, name string, mode uint32, target string, out *fuse.EntryOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir := f.nodes[in.NodeId]
	switch {
	case dir.gone:
		return fuse.ENOENT
	case dir.entries[name] != nil:
		return fuse.Status(unix.EEXIST)
	}
	n := f.node(name, mode)
	n.target, n.label = target, slices.Clone(dir.label)
	dir.put(name, n)
	f.created++
	f.entered(n, out)
	return fuse.OK
}

func (f *inheriting) remove(in *fuse.InHeader, name string, dir bool) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.nodes[in.NodeId]
	e := at.entries[name]
	switch {
	case e == nil:
		return fuse.ENOENT
	case len(e.entries) > 0:
		return fuse.Status(unix.ENOTEMPTY)
	case dir != (e.entries != nil):
		return fuse.ENOTDIR
	}
	at.take(name)
	f.unlinked(e.node)
	return fuse.OK
}

func (f *inheriting) unlinked(n *node) {
	n.gone = true
	if n.lookups == 0 {
		delete(f.nodes, n.ino)
	}
}
