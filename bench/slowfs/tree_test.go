// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/bench/server"
	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }

func TestChildren(t *testing.T) {
	for _, c := range [][2]int{{0, 1}, {1, 1}, {10, 3}, {2, 5}, {1000, 7}} {
		tree := newTree(0, c[0], c[1])
		seen := map[int]int{1: 1}
		for ino := 1; ino < len(tree.labels); ino++ {
			from, to := tree.children(ino)
			for child := from; child < to; child++ {
				seen[child]++
			}
		}
		for ino := 1; ino < len(tree.labels); ino++ {
			if seen[ino] != 1 {
				t.Errorf("%v: inode %d is in %d directories", c, ino, seen[ino])
			}
		}
		if len(seen) != len(tree.labels)-1 {
			t.Errorf("%v: %d entries, want %d", c, len(seen), len(tree.labels)-1)
		}
	}
}

// again makes a call anew that a signal of Go's runtime interrupted.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// TestServe mounts one and checks what is there, that requests wait and that
// they do so at the same time.
func TestServe(t *testing.T) {
	treetest.Need(t, "root", "fuse", "tmpfs")
	const delay, files = 20 * time.Millisecond, 100
	dir := t.TempDir()
	mounted, err := server.Mount(newTree(delay, files, 3), dir, &options)
	if err != nil {
		t.Fatal(err)
	}
	defer mounted.Unmount()
	if err := again(func() error { return unix.Setxattr(dir, fill, []byte("a:b:c"), 0) }); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(dir + "/*/*")
	if err != nil || len(paths) != files {
		t.Fatalf("%d files: %v", len(paths), err)
	}

	write := func(path string) {
		if err := again(func() error { return unix.Lsetxattr(path, attribute, []byte("d:e:f\x00"), 0) }); err != nil {
			t.Error(err)
		}
	}
	begin := time.Now()
	for _, path := range paths[:files/2] {
		write(path)
	}
	inTurn := time.Since(begin)
	begin = time.Now()
	var all sync.WaitGroup
	for _, path := range paths[files/2:] {
		all.Go(func() { write(path) })
	}
	all.Wait()
	if took := time.Since(begin); inTurn < files/2*delay || took < delay || took > inTurn/2 {
		t.Errorf("%d requests in turn took %v, at once %v, and one is to take %v", files/2, inTurn, took, delay)
	}
	for label, want := range map[string]string{"a:b:c": fmt.Sprint(files), "d:e:f": "4"} {
		value := make([]byte, 20)
		n := 0
		err := again(func() (err error) { n, err = unix.Getxattr(dir, wrong+label, value); return err })
		if err != nil || string(value[:n]) != want {
			t.Errorf("%s: %s wrong, %v, want %s", label, value[:max(n, 0)], err, want)
		}
	}
	value, n := make([]byte, 20), 0
	err = again(func() (err error) { n, err = unix.Lgetxattr(paths[0], attribute, value); return err })
	if err != nil || strings.TrimRight(string(value[:n]), "\x00") != "d:e:f" {
		t.Errorf("%s: %q, %v", paths[0], value[:max(n, 0)], err)
	}
	if _, err := os.Lstat(dir + "/n0000099"); !os.IsNotExist(err) {
		t.Errorf("what is not there: %v", err)
	}
}
