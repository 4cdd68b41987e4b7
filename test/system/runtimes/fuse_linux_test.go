// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// server is a volume served by this process: it shows the volume beneath, counts
// what hooks do to it, and can be slow or hold them up.
type server struct {
	volume
	dir  string // where it is mounted
	hook string // a link to the command, by which its hooks are known

	mu    sync.Mutex
	delay time.Duration  // of each setting of a label
	gate  chan struct{}  // if there is one, settings wait until it is closed
	opens map[string]int // how often a hook opened this directory
	sets  map[string]int // how often a label was set on this entry
}

// serve mounts the volume's server.
func serve(t testing.TB, v volume) *server {
	t.Helper()
	treetest.Need(t, "fuse")
	s := &server{volume: v, dir: filepath.Join(filepath.Dir(v.root), "served"), opens: map[string]int{}, sets: map[string]int{}}
	s.hook = filepath.Join(place.dir, fmt.Sprint("hook-", last.Add(1)))
	if err := os.Link(place.hook, s.hook); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// A process that inherits the connection would keep it alive: nobody
	// forks before it is marked.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	data := &fs.LoopbackRoot{Path: v.root}
	root := &node{LoopbackNode: &fs.LoopbackNode{RootData: data}, server: s}
	data.RootNode = root
	srv, err := fs.Mount(s.dir, root, &fs.Options{MountOptions: fuse.MountOptions{
		FsName: "runtimes", Name: "counting", DirectMountStrict: true, Logger: log.New(io.Discard, "", 0),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.release()
		if err := srv.Unmount(); err != nil {
			t.Error(err)
		}
	})
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); to == "/dev/fuse" {
			n, err := strconv.Atoi(filepath.Base(fd))
			if err != nil {
				t.Fatal(err)
			}
			unix.CloseOnExec(n)
		}
	}
	return s
}

// hold makes hooks wait where they would set a label. Even one that is killed waits.
func (s *server) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = make(chan struct{})
}

// release lets them go on, and all others, without any delay.
func (s *server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = 0
	if s.gate != nil {
		close(s.gate)
		s.gate = nil
	}
}

// slow makes each setting of a label take so long.
func (s *server) slow(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = delay
}

// counts gives the counts so far, and begins anew.
func (s *server) counts() (opens, sets map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	opens, sets = s.opens, s.sets
	s.opens, s.sets = map[string]int{}, map[string]int{}
	return opens, sets
}

type node struct {
	*fs.LoopbackNode
	server *server
}

var (
	_ fs.NodeWrapChilder    = (*node)(nil)
	_ fs.NodeSetxattrer     = (*node)(nil)
	_ fs.NodeOpendirHandler = (*node)(nil)
)

// WrapChild makes what is found in a directory a node of this server as well.
func (n *node) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	if found, is := ops.(*fs.LoopbackNode); is {
		return &node{LoopbackNode: found, server: n.server}
	}
	return ops
}

// Setxattr sets a label, after the delay.
func (n *node) Setxattr(ctx context.Context, attr string, data []byte, flags uint32) syscall.Errno {
	s := n.server
	s.mu.Lock()
	s.sets[n.Path(nil)]++
	delay, gate := s.delay, s.gate
	s.mu.Unlock()
	time.Sleep(delay)
	if gate != nil {
		<-gate
	}
	return n.LoopbackNode.Setxattr(ctx, attr, data, flags)
}

// OpendirHandle opens a directory. The containers' processes do so as well, and
// are not counted: the kernel says who asks.
func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if caller, is := fuse.FromContext(ctx); is && isHook(int(caller.Pid), n.server.hook) {
		n.server.mu.Lock()
		n.server.opens[n.Path(nil)]++
		n.server.mu.Unlock()
	}
	return n.LoopbackNode.OpendirHandle(ctx, flags)
}
