// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// On btrfs a label lies in the tree of its subvolume, beside the inode, and the
// kernel gives a megabyte of that tree at once to those who have CAP_SYS_ADMIN.
// So where the root is a whole subvolume and is right, or nothing is to be
// written, labels are read from there: a call for some thousand entries. Those
// that are wrong are then labelled as the walk would, by name in their
// directories.
//
// A subtree that has not changed since a transaction is passed over by the
// kernel. With the transaction of the last mark (see since_linux.go) a volume
// that is as it was takes a few calls, whatever its size; and labels that were
// changed in place are found too.
//
// Whatever is not as simple as that is left to the walk: subvolumes in the
// subvolume, mounts and exclusions in it, many wrong labels, a path that is too
// long or changes while it is looked up.

const (
	// bulkBuffer is what one call reads; a worker has one.
	bulkBuffer = 1 << 20
	// bulkParts is into how many ranges of inode numbers the tree is divided.
	bulkParts = 64
	// bulkWrong bounds the memory for what is wrong, in bytes: some 100,000
	// entries. Where more is, reading first was no gain.
	bulkWrong = 8 << 20
	// neighbours of the root's own items come along with each reading.
	neighbours = 256
)

// bulk is a reading of one subvolume.
type bulk struct {
	*run
	m     *mount
	fd    int
	since uint64 // transaction; 0 reads everything
	end   uint64 // above the highest inode number

	part atomic.Uint64 // the next range
	stop atomic.Bool   // it is for the walk, or over

	mu    sync.Mutex
	tally tally
	size  int // of wrong, in bytes
	wrong map[uint64][]byte
}

// bulkable says whether the labels of m can be read in bulk.
func (r *run) bulkable(m *mount) bool {
	return m.btrfs && m.st.Ino == sys.BtrfsRoot && r.means.bulk && r.o.HardLinks == LinksLabel && r.o.Throttle == nil &&
		len(m.left) == 0 && len(beneath(r.proc.mounts, m.real)) == 0
}

// readBulk reads the labels of m. It returns what is to be labelled, as work for the
// walk, and no if all of it is work for the walk.
func (r *run) readBulk(ctx context.Context, m *mount, since uint64) ([]item, bool) {
	b := &bulk{run: r, m: m, fd: int(m.top.fd), since: since, wrong: make(map[uint64][]byte)}
	m.strand.at("ioctl", m.path)
	defer m.strand.at("", "")
	if since != 0 && sys.Syncfs(b.fd) != 0 {
		return nil, false // what waits to be put into the tree would be missed
	}
	if !b.bounds() {
		return nil, false
	}
	workers := r.o.Threads
	if workers < 1 {
		workers = processors()
	}
	end := context.AfterFunc(ctx, func() { b.stop.Store(true) })
	var all sync.WaitGroup
	for range min(workers, bulkParts) {
		all.Go(func() { b.read() })
	}
	all.Wait()
	end()
	if b.stop.Load() {
		return nil, false
	}
	found, ok := b.work()
	if ok {
		r.add(b.tally)
		r.met(b.tally.seen)
	}
	return found, ok
}

// bounds finds where the inode numbers end.
func (b *bulk) bounds() bool {
	buf := make([]byte, 4<<10) // too little for some items: then there is one
	low, high := uint64(sys.BtrfsRoot), uint64(sys.BtrfsLast)
	for low < high {
		mid := low + (high-low)/2
		n, e := sys.BtrfsSearch(b.fd, sys.BtrfsKey{Object: mid}, sys.BtrfsLast, 0, buf)
		switch {
		case e != 0 && e != syscall.EOVERFLOW:
			return false
		case e != 0 || n > 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	b.end = low
	return true
}

// read goes through ranges of the tree until there are no more.
func (b *bulk) read() {
	s := &bulkReader{bulk: b, buf: make([]byte, bulkBuffer)}
	step := (b.end-sys.BtrfsRoot)/bulkParts + 1
	for !b.stop.Load() {
		part := b.part.Add(1) - 1
		from, last := sys.BtrfsRoot+part*step, sys.BtrfsRoot+(part+1)*step-1
		if part >= bulkParts {
			break
		}
		if part == bulkParts-1 {
			last = sys.BtrfsLast // what is created meanwhile
		}
		s.span(from, last, b.since)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tally.add(s.tally)
}

// bulkReader is one worker's share.
type bulkReader struct {
	*bulk
	buf   []byte
	tally tally
	at    uint64 // the inode whose items come
	inode bool   // its own was among them
	label bool   // its label was, and is right
	names []bulkName
	doubt []uint64 // inodes of which not all was read
}

type bulkName struct {
	parent uint64
	name   []byte
}

// span reads the items of a range of inodes.
func (s *bulkReader) span(from, last, since uint64) {
	s.search(from, last, since)
	for _, object := range s.doubt {
		s.search(object, object, 0)
	}
	s.doubt = s.doubt[:0]
}

func (s *bulkReader) search(from, last, since uint64) {
	key, more := sys.BtrfsKey{Object: from}, true
	for more && key.Object <= last && !s.stop.Load() {
		n, e := sys.BtrfsSearch(s.fd, key, last, since, s.buf)
		if e != 0 {
			s.stop.Store(true)
			return
		}
		if n == 0 {
			break
		}
		key, more = sys.BtrfsItems(s.buf, n, func(it sys.BtrfsItem) bool { return s.item(it, since) }).Next()
		for i := range s.names {
			s.names[i].name = bytes.Clone(s.names[i].name)
		}
	}
	s.done(since)
	s.at = 0
}

// item takes one item in. It says no if the walk has to do it all.
func (s *bulkReader) item(it sys.BtrfsItem, since uint64) bool {
	if it.Object != s.at {
		s.done(since)
		s.at, s.inode, s.label, s.names = it.Object, false, false, s.names[:0]
	}
	switch it.Type {
	case sys.BtrfsInodeItem:
		s.inode = true
	case sys.BtrfsInodeRef, sys.BtrfsInodeExtref:
		for len(it.Data) > 0 {
			parent, name, rest := sys.BtrfsName(it)
			if len(name) == 0 {
				break
			}
			s.names = append(s.names, bulkName{parent, name})
			it.Data = rest
		}
	case sys.BtrfsXattrItem:
		for rest := it.Data; len(rest) > 0; {
			var name, value []byte
			if name, value, _, rest = sys.BtrfsDirEntry(rest); string(name) == attribute {
				s.label = sameLabel(value, s.want)
			}
		}
	case sys.BtrfsDirItem:
		for rest := it.Data; len(rest) > 0; {
			var subvolume bool
			if _, _, subvolume, rest = sys.BtrfsDirEntry(rest); subvolume {
				s.stop.Store(true)
				return false
			}
		}
	}
	return true
}

// done judges the inode whose items have all come.
func (s *bulkReader) done(since uint64) {
	switch {
	case s.at < sys.BtrfsRoot+1: // none, or the root, which the record is about
	case since != 0 && (!s.inode || !s.label || len(s.names) == 0):
		s.doubt = append(s.doubt, s.at)
	case !s.inode || len(s.names) == 0: // removed, and still open
	case s.label:
		s.tally.seen += int64(len(s.names))
		s.tally.of[right] += int64(len(s.names))
	default:
		s.miss()
	}
}

// miss notes an inode with a wrong label, by its names: records of the directories
// it is in. It is no directory there: it is labelled, and nothing else.
func (s *bulkReader) miss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.names {
		before := len(s.wrong[n.parent])
		s.wrong[n.parent] = sys.AppendRecord(s.wrong[n.parent], s.at, sys.KindFile, n.name)
		s.size += len(s.wrong[n.parent]) - before
	}
	if s.size > bulkWrong {
		s.stop.Store(true)
	}
}

// work makes items of what is wrong.
func (b *bulk) work() ([]item, bool) {
	var items []item
	dirs := map[string]*dir{"": b.m.top}
	parents := make([]uint64, 0, len(b.wrong))
	for parent := range b.wrong {
		parents = append(parents, parent)
	}
	slices.Sort(parents)
	for _, parent := range parents {
		d, ok := b.find(parent, dirs)
		if !ok {
			return nil, false
		}
		for records := b.wrong[parent]; len(records) > 0; {
			n := sys.Cut(records, bufferSize)
			items = append(items, item{dir: d, rest: records[:n:n]})
			records = records[n:]
		}
	}
	return items, true
}

// find makes the directory with that inode number, and those above it, known to
// the walk, and makes sure that it is where it is said to be.
func (b *bulk) find(object uint64, dirs map[string]*dir) (*dir, bool) {
	if object == sys.BtrfsRoot {
		return b.m.top, true
	}
	path, e := sys.BtrfsPath(b.fd, object)
	if e != 0 {
		return nil, false
	}
	d, at := b.m.top, b.fd
	done := 0
	for name := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		next, _, e := b.m.openDir(at, sys.Cname(name))
		if at != b.fd {
			sys.Close(at)
		}
		if e != 0 {
			return nil, false
		}
		at = next
		done += len(name) + 1
		known := dirs[path[:done]]
		if known == nil {
			known = d.child(name+"\x00", -1)
			known.shared, known.outcome = true, elsewhere
			dirs[path[:done]] = known
		}
		d = known
	}
	st, e := sys.Fstatx(at)
	if at != b.fd {
		sys.Close(at)
	}
	d.was = identify(st)
	return d, e == 0 && st.Ino == object
}

// generation is which filesystem it is, and in which transaction; 0 where that
// cannot be told.
func (m *mount) generation() (fsid string, transid uint64) {
	if m.btrfs {
		if id, transid, e := sys.BtrfsState(int(m.top.fd)); e == 0 && transid != 0 {
			return hex.EncodeToString(id[:]), transid
		}
	}
	return "-", 0
}
