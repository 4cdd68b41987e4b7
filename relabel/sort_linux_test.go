// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/order"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/walk"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestGathered: of a large directory whose labels are wrong all but the first few
// entries are written in the order of inodes, and none twice; where they are right
// but for some, none is left out. So it is within one buffer. Where they do not fit, they do if
// there is memory to spare. The controls are a walk that sorts nothing, and one that has none to spare.
func TestGathered(t *testing.T) {
	treetest.Need(t, "ext4")
	for _, c := range []struct {
		name   string
		files  int
		from   int64
		budget int
		spare  int64
		sorted bool
	}{
		{"buffer", 480, order.Ample.From, order.Ample.Budget, 0, true},
		{"large", 6000, 1, order.Ample.Budget, 0, true},
		{"control", 6000, 0, order.Ample.Budget, 0, false},
		{"spare", 6000, 1, 64 << 10, 1 << 20, true},
		{"none to spare", 6000, 1, 64 << 10, 0, false},
	} {
		m := capabilities{kernel: walk.Kernel{Sorting: order.Sorting{From: c.from, Budget: c.budget, Memory: func() int64 { return c.spare }}}, openat2: true}
		root := mkdir(t, treetest.Fresh(t, "ext4"), "root")
		files := int64(c.files)
		flat(t, root, c.files)
		var inodes []uint64
		told := Options{Workers: 1, Trace: &Trace{Change: func(path, _, _ string) {
			st, _ := sys.Statx(sys.AtFdcwd, sys.Cname(path))
			inodes = append(inodes, st.Ino)
		}}}
		r, err := tree(t.Context(), root, newLabel, told, as(m))
		if err != nil || !r.Complete || r.Seen != files+1 || r.Written != files+1 || len(inodes) != c.files+1 {
			t.Errorf("%s: %d told: %+v, %v", c.name, len(inodes), r, err)
			continue
		}
		if sorted := slices.IsSorted(inodes[2*guessAfter : files]); sorted != c.sorted {
			t.Errorf("%s: in the order of inodes: %t", c.name, sorted)
		}
		for i := 0; i < c.files; i += 48 {
			treetest.Set(t, root, fmt.Sprintf("f%011d", i), oldLabel)
		}
		r, err = tree(t.Context(), root, newLabel, told, as(m))
		if err != nil || !r.Complete || r.Seen != files+1 || r.Written != files/48 {
			t.Errorf("%s: one in 48 was wrong: %+v, %v", c.name, r, err)
		}
	}
}

// TestGatheredNoIndex: of a directory without an index, which is read from a position in its
// parts, or has no upper half, all is labelled, by several workers too.
func TestGatheredNoIndex(t *testing.T) {
	treetest.Need(t, "ext4")
	const files = 8000
	root := mkdir(t, ext4With(t, "^dir_index"), "root")
	flat(t, root, files)
	for i, threads := range []int{1, 8, 1, 8} {
		label := fmt.Sprintf("u:r:t:s0:c%d", i)
		m := capabilities{kernel: walk.Kernel{Sorting: order.Sorting{From: 1, Budget: []int{64 << 10, order.Ample.Budget}[i/2]}}, openat2: true}
		r, err := tree(t.Context(), root, label, Options{Workers: threads}, as(m))
		if err != nil || !r.Complete || r.Written != files+1 || len(bearing(t, root, label)) != files+1 {
			t.Errorf("%d threads, run %d: %+v, %v", threads, i, r, err)
		}
	}
}

// TestGatheredGrown: of a directory that has grown since its size was asked for, what there is no
// room for is labelled as it lies, and nothing twice.
func TestGatheredGrown(t *testing.T) {
	treetest.Need(t, "ext4", "plain") // else new names have their label, or another
	root := treetest.Fresh(t, "ext4")
	dir := mkdir(t, root, "dir") // of the root itself, all is read again
	flat(t, dir, 8000)
	st, err := os.Stat(dir)
	treetest.Must(t, err)
	var grow sync.Once
	r, err := tree(t.Context(), root, newLabel, Options{Workers: 2, Trace: &Trace{Change: func(path, _, _ string) {
		if !strings.HasPrefix(path, dir+"/") {
			return
		}
		grow.Do(func() {
			for i := range 30_000 {
				treetest.Must(t, unix.Mknod(fmt.Sprintf("%s/g%07d", dir, i), unix.S_IFREG|0o600, 0))
			}
		})
	}}}, as(capabilities{kernel: walk.Kernel{Sorting: order.Sorting{From: 1, Budget: int(st.Size())}}, openat2: true}))
	// A quarter of the new names comes before what was read first, and has its label from dir.
	if err != nil || !r.Complete || r.Written < 28_000 || r.Seen != r.Written || int64(len(bearing(t, root, newLabel))) != r.Written {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestLine: large directories that wait to be sorted need no descriptors. One that
// was renamed while it waited is labelled where it is still open; else it is a
// failure and named, and nothing says that all is done.
func TestLine(t *testing.T) {
	treetest.Need(t, "ext4")
	const each = bufferSize/280 + 2 // more than a buffer of the longest names
	dirs := sized(120, 80)          // more than there may be files
	root := mkdir(t, treetest.Fresh(t, "ext4"), "root")
	for i := range dirs {
		dir := mkdir(t, root, fmt.Sprintf("d%03d", i))
		for j := range each {
			treetest.Must(t, unix.Mknod(fmt.Sprintf("%s/%0255d", dir, j), unix.S_IFREG|0o600, 0))
		}
	}
	cmd := child(t, "line", root)
	cmd.Args = append([]string{"sh", "-c", `ulimit -n 64 && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	treetest.Output(t, cmd)
}

// inSlice reports whether the worker that calls Throttle labels a slice.
func inSlice() bool {
	buf := make([]byte, 1<<16)
	return strings.Contains(string(buf[:runtime.Stack(buf, false)]), "(*sortedRange).do")
}

// lined labels root, whose directories are large, with two workers. The first slice
// waits until all the other directories are in line.
func lined(t *testing.T, root string) {
	dirs, err := os.ReadDir(root)
	treetest.Must(t, err)
	var progress Progress
	var once sync.Once
	r, err := tree(t.Context(), root, newLabel, Options{
		Workers: 2, Progress: &progress,
		Throttle: func(context.Context, int) error {
			if inSlice() {
				once.Do(func() {
					treetest.Wait(t, "all are in line", func() bool {
						s, _ := progress.State()
						return s.Seen >= int64(len(dirs)*(2*guessAfter-1)) // itself, and what is looked at but . and ..
					})
				})
			}
			return nil
		},
	}, as(capabilities{kernel: walk.Kernel{Sorting: order.Sorting{From: 1, Budget: order.Ample.Budget}}, openat2: true, clones: true}))
	adds(t, r)
	if all := treetest.Count(t, root).All; err != nil || !r.Complete || int64(len(bearing(t, root, newLabel))) != all {
		t.Errorf("%d entries: %+v, %v", all, r, err)
	}
}
