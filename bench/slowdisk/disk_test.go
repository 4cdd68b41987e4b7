// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/bench/server"
	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }

// TestServe mounts one and checks that it keeps what is written, counts what is asked,
// and is no faster than its pace, in turn or at once.
func TestServe(t *testing.T) {
	treetest.Need(t, "root", "fuse", "tmpfs")
	const limit, delay, requests = 200, 20 * time.Millisecond, 40
	dir := t.TempDir()
	d, err := newDisk(1<<30, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	mounted, err := server.Mount(d, dir, &options)
	if err != nil {
		t.Fatal(err)
	}
	defer mounted.Unmount()
	f, err := os.OpenFile(filepath.Join(dir, "disk"), os.O_RDWR|syscall.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := func() []byte {
		b, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(b) })
		return b
	}
	wrote := page()
	copy(wrote, "what is on the disk")
	if _, err := f.WriteAt(wrote, 1<<20); err != nil {
		t.Fatal(err)
	}

	set := func(value string) error {
		for {
			if err := unix.Setxattr(dir, pace, []byte(value), 0); err != unix.EINTR {
				return err
			}
		}
	}
	if err := set("200 20ms"); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if _, err := f.ReadAt(page(), 0); err != nil || time.Since(begin) < delay {
		t.Errorf("a request took %v, %v", time.Since(begin), err)
	}
	begin = time.Now()
	var all sync.WaitGroup
	for range requests {
		b := page()
		all.Go(func() {
			if _, err := f.ReadAt(b, 1<<20); err != nil || !bytes.Equal(b, wrote) {
				t.Errorf("%v: %q", err, b[:20])
			}
		})
	}
	all.Wait()
	if took := time.Since(begin); took < (requests-1)*time.Second/limit+delay {
		t.Errorf("%d requests took %v", requests, took)
	}
	if err := f.Sync(); err != nil {
		t.Error(err)
	}
	text := make([]byte, 512)
	n := 0
	for {
		if n, err = unix.Getxattr(dir, report, text); err != unix.EINTR {
			break
		}
	}
	var got counts
	if err != nil || json.Unmarshal(text[:n], &got) != nil {
		t.Fatalf("%q: %v", text[:max(n, 0)], err)
	}
	if got.Reads != requests+1 || got.Writes != 0 || got.Flushes != 1 || got.Bytes != 4096*(requests+1) || got.Deepest < 2 || got.Waited < requests*delay.Seconds() {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{"", "1", "1 x"} {
		if err := set(bad); err != unix.EINVAL {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
