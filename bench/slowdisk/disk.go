// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	largest = 256 << 10 // bytes of a request
	pace    = "user.slowdisk.pace"
	report  = "user.slowdisk.counts"

	root, file = 1, 2 // inodes
)

// counts is what was asked of the disk since the pace was set.
type counts struct {
	Reads   int64   `json:"reads"`
	Writes  int64   `json:"writes"`
	Flushes int64   `json:"flushes"`
	Bytes   int64   `json:"bytes"`
	Deepest int     `json:"deepest"` // the most requests in flight
	Waited  float64 `json:"waited"`  // seconds that requests were in flight, all together
}

// disk is the filesystem. Its requests end in the order in which they come: one
// goroutine sleeps until each is due.
type disk struct {
	fuse.RawFileSystem
	image *os.File
	size  int64
	due   chan request

	mu       sync.Mutex
	interval time.Duration // between two requests
	delay    time.Duration
	next     time.Time // when the next may begin
	since    time.Time
	inFlight int
	counts   counts
	log      io.Writer
}

type request struct {
	at   time.Time
	done chan struct{}
}

func newDisk(size int64, log io.Writer) (*disk, error) {
	fd, err := unix.MemfdCreate("slowdisk", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	d := &disk{
		RawFileSystem: fuse.NewDefaultRawFileSystem(), image: os.NewFile(uintptr(fd), "slowdisk"), size: size,
		due: make(chan request, 4096), since: time.Now(), log: log,
	}
	go d.finish()
	return d, d.image.Truncate(size)
}

// finish ends each request when it is due. A timer of Go's is up to a millisecond late.
func (d *disk) finish() {
	runtime.LockOSThread()
	for r := range d.due {
		for left := time.Until(r.at); left > 0; left = time.Until(r.at) {
			sleep := unix.NsecToTimespec(left.Nanoseconds())
			_ = unix.Nanosleep(&sleep, nil) // the clock is asked again
		}
		close(r.done)
	}
}

// begin counts a request, and returns the function that waits until it is due.
func (d *disk) begin(count *int64, op string, offset uint64, bytes int) (wait func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	*count++
	d.counts.Bytes += int64(bytes)
	d.inFlight++
	d.counts.Deepest = max(d.counts.Deepest, d.inFlight)
	fmt.Fprintf(d.log, "%.3f %s %d %d %d\n", now.Sub(d.since).Seconds()*1000, op, offset, bytes, d.inFlight)
	if now.After(d.next) {
		d.next = now
	}
	r := request{d.next.Add(d.delay), make(chan struct{})}
	if bytes > 0 {
		d.next = d.next.Add(d.interval)
	}
	slow := d.delay > 0 || d.interval > 0
	if slow {
		d.due <- r
	}
	return func() {
		if slow {
			<-r.done
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.inFlight--
		d.counts.Waited += time.Since(now).Seconds()
	}
}

func (d *disk) attr(ino uint64, out *fuse.Attr) {
	*out = fuse.Attr{Ino: ino, Mode: syscall.S_IFDIR | 0o700, Nlink: 1, Blksize: 4096}
	if ino == file {
		out.Mode, out.Size = syscall.S_IFREG|0o600, uint64(d.size)
	}
}

func (d *disk) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if in.NodeId != root || name != "disk" {
		return fuse.ENOENT
	}
	out.NodeId, out.Generation = file, 1
	d.attr(file, &out.Attr)
	return fuse.OK
}

func (d *disk) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	d.attr(in.NodeId, &out.Attr)
	return fuse.OK
}

func (d *disk) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.NameLen = 4096, 255
	return fuse.OK
}

func (d *disk) Open(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status { return fuse.OK }

func (d *disk) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	wait := d.begin(&d.counts.Reads, "read", in.Offset, int(in.Size))
	n, err := d.image.ReadAt(buf, int64(in.Offset))
	wait()
	if err != nil && err != io.EOF {
		return nil, fuse.ToStatus(err)
	}
	return fuse.ReadResultData(buf[:n]), fuse.OK
}

func (d *disk) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	wait := d.begin(&d.counts.Writes, "write", in.Offset, len(data))
	n, err := d.image.WriteAt(data, int64(in.Offset))
	wait()
	return uint32(n), fuse.ToStatus(err)
}

func (d *disk) Fsync(<-chan struct{}, *fuse.FsyncIn) fuse.Status {
	d.begin(&d.counts.Flushes, "flush", 0, 0)()
	return fuse.OK
}

func (d *disk) SetXAttr(_ <-chan struct{}, in *fuse.SetXAttrIn, name string, value []byte) fuse.Status {
	var limit int
	var delay string
	if _, err := fmt.Sscan(string(value), &limit, &delay); err != nil || in.NodeId != root || name != pace {
		return fuse.EINVAL
	}
	wait, err := time.ParseDuration(delay)
	if err != nil {
		return fuse.EINVAL
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay, d.interval = wait, 0
	if limit > 0 {
		d.interval = time.Second / time.Duration(limit)
	}
	d.counts, d.since = counts{}, time.Now()
	return fuse.OK
}

func (d *disk) GetXAttr(_ <-chan struct{}, in *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	if in.NodeId != root || name != report {
		return 0, fuse.ENOATTR
	}
	d.mu.Lock()
	text, err := json.Marshal(d.counts)
	d.mu.Unlock()
	switch {
	case err != nil:
		return 0, fuse.ToStatus(err)
	case len(dest) < len(text):
		return uint32(len(text)), fuse.ERANGE
	}
	return uint32(copy(dest, text)), fuse.OK
}
