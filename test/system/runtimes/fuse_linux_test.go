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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// server is a volume served by this process: it shows the volume beneath, and can be slow.
type server struct {
	volume
	dir   string       // where it is mounted
	hook  string       // a link to the command, by which its hooks are known
	delay atomic.Int64 // of each setting of a label, in nanoseconds
}

// serve mounts the volume's server.
func serve(t testing.TB, v volume) *server {
	t.Helper()
	treetest.Need(t, "fuse")
	s := &server{volume: v, dir: filepath.Join(filepath.Dir(v.root), "served")}
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
		FsName: "runtimes", Name: "slow", DirectMountStrict: true, Logger: log.New(io.Discard, "", 0),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.slow(0)
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

// slow makes each setting of a label take so long.
func (s *server) slow(delay time.Duration) { s.delay.Store(int64(delay)) }

type node struct {
	*fs.LoopbackNode
	server *server
}

var (
	_ fs.NodeWrapChilder = (*node)(nil)
	_ fs.NodeSetxattrer  = (*node)(nil)
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
	time.Sleep(time.Duration(n.server.delay.Load()))
	return n.LoopbackNode.Setxattr(ctx, attr, data, flags)
}
