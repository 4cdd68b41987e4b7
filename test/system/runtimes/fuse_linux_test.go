// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
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
	treetest.Must(t, os.Link(place.hook, s.hook))
	treetest.Must(t, os.Mkdir(s.dir, 0o755))
	// A process that inherits the connection would keep it alive: nobody
	// forks before it is marked.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	root, err := fs.NewLoopbackRoot(v.root)
	treetest.Must(t, err)
	srv, err := fuse.NewServer(slowed{fs.NewNodeFS(root, &fs.Options{}), s}, s.dir, &fuse.MountOptions{
		FsName: "runtimes", Name: "slow", DirectMountStrict: true, Logger: log.New(io.Discard, "", 0),
	})
	treetest.Must(t, err)
	go srv.Serve()
	treetest.Must(t, srv.WaitMount())
	t.Cleanup(func() {
		s.slow(0)
		treetest.Check(t, srv.Unmount())
	})
	fds, err := filepath.Glob("/proc/self/fd/*")
	treetest.Must(t, err)
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); to == "/dev/fuse" {
			n, err := strconv.Atoi(filepath.Base(fd))
			treetest.Must(t, err)
			unix.CloseOnExec(n)
		}
	}
	return s
}

// slow makes each setting of a label take so long.
func (s *server) slow(delay time.Duration) { s.delay.Store(int64(delay)) }

type slowed struct {
	fuse.RawFileSystem // of the volume
	server             *server
}

// SetXAttr sets a label, after the delay.
func (f slowed) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, attr string, value []byte) fuse.Status {
	time.Sleep(time.Duration(f.server.delay.Load()))
	return f.RawFileSystem.SetXAttr(cancel, in, attr, value)
}
