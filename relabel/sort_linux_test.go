// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/order"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
	"github.com/fastlabel/fastlabel/relabel/internal/walk"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestWindows: a directory is labelled in the order of inodes, in the buffer, in
// one window or in many, and nothing is left out.
func TestWindows(t *testing.T) {
	treetest.Need(t, "ext4")
	const strays int64 = 120
	for _, c := range []struct {
		name    string
		files   int64
		budget  int
		threads int
		sorted  bool
	}{
		{"buffer", 480, order.Ample.Budget, 1, true},
		{"one", 6000, order.Ample.Budget, 1, true},
		{"many", 6000, 1, 1, false},
		{"shared", 6000, 1, 4, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := mkdir(t, treetest.Fresh(t, "ext4"), "root")
			flat := mkdir(t, root, "flat")
			for i := range c.files {
				if i%(c.files/strays) == 0 {
					mkdir(t, flat, fmt.Sprintf("dir%08d", i), "deeper")
				}
				if err := unix.Mknod(fmt.Sprintf("%s/file%08d", flat, i), unix.S_IFREG|0o600, 0); err != nil {
					t.Fatal(err)
				}
			}
			m := capabilities{kernel: walk.Kernel{Sorting: order.Sorting{From: order.Ample.From, Budget: c.budget}}, openat2: true}
			for range 2 {
				if _, err := tree(t.Context(), root, newLabel, Options{}, as(m)); err != nil {
					t.Fatal(err)
				}
			}
			for i := int64(0); i < c.files; i += c.files / strays {
				treetest.Set(t, flat, fmt.Sprintf("file%08d", i), oldLabel)
			}
			var inodes []uint64
			r, err := tree(t.Context(), root, newLabel, Options{Workers: c.threads, Trace: &Trace{Change: func(path, _, _ string) {
				st, _ := sys.Statx(sys.AtFdcwd, sys.Cname(path))
				inodes = append(inodes, st.Ino)
			}}}, as(m))
			all := c.files + 2*strays + 2
			if err != nil || r.Seen != all || r.Written != strays || r.Right != all-strays || int64(len(inodes)) != strays {
				t.Errorf("%d told: %+v, %v", len(inodes), r, err)
			}
			if sorted := slices.IsSorted(inodes); sorted != c.sorted {
				t.Errorf("in the order of inodes: %t", sorted)
			}
		})
	}
}

// TestGathered: of a large directory whose labels are wrong all but the first few
// entries are written in the order of inodes, and none twice; where they are right
// but for some, none is left out. Where they do not fit, they do if there is memory to
// spare. The controls are a walk that sorts nothing, and one that has none to spare.
func TestGathered(t *testing.T) {
	treetest.Need(t, "ext4")
	const files = 6000
	for _, c := range []struct {
		name   string
		from   int64
		budget int
		spare  int64
		sorted bool
	}{
		{"large", 1, order.Ample.Budget, 0, true},
		{"control", 0, order.Ample.Budget, 0, false},
		{"spare", 1, 64 << 10, 1 << 20, true},
		{"none to spare", 1, 64 << 10, 0, false},
	} {
		m := capabilities{kernel: walk.Kernel{Sorting: order.Sorting{From: c.from, Budget: c.budget, Memory: func() int64 { return c.spare }}}, openat2: true}
		root := mkdir(t, treetest.Fresh(t, "ext4"), "root")
		flat(t, root, files)
		for _, threads := range []int{1, 3} {
			var inodes []uint64
			label := fmt.Sprintf("u:r:t:s0:c%d", threads)
			r, err := tree(t.Context(), root, label, Options{Workers: threads, Trace: &Trace{Change: func(path, _, _ string) {
				st, _ := sys.Statx(sys.AtFdcwd, sys.Cname(path))
				inodes = append(inodes, st.Ino)
			}}}, as(m))
			if err != nil || !r.Complete || r.Seen != files+1 || r.Written != files+1 || len(inodes) != files+1 {
				t.Errorf("%s: %d told: %+v, %v", c.name, len(inodes), r, err)
				continue
			}
			// With more threads slices take turns.
			if sorted := slices.IsSorted(inodes[2*guessAfter : files]); threads == 1 && sorted != c.sorted {
				t.Errorf("%s: in the order of inodes: %t", c.name, sorted)
			}
			for i := 0; i < files; i += 50 {
				treetest.Set(t, root, fmt.Sprintf("f%011d", i), oldLabel)
			}
			r, err = tree(t.Context(), root, label, Options{Workers: threads}, as(m))
			if err != nil || !r.Complete || r.Seen != files+1 || r.Written != files/50 {
				t.Errorf("%s: one in 50 was wrong: %+v, %v", c.name, r, err)
			}
		}
	}
}

// TestStretches: what is gathered is read in stretches, by one worker or by several, and
// each name counts once: where some stretches have none too, and where the directory has
// no index and is not divided.
func TestStretches(t *testing.T) {
	treetest.Need(t, "ext4")
	const files, least = 8000, bufferSize / 32 // what is read at once is not gathered
	m := capabilities{kernel: walk.Kernel{Sorting: order.Sorting{From: 1, Budget: order.Ample.Budget}}, openat2: true}
	volume := treetest.Fresh(t, "ext4")
	for _, c := range []struct {
		name, volume string
		keep         func(at int64) bool // a name at this position
		all          bool
	}{
		{"all", volume, func(int64) bool { return true }, true},
		{"none in some", volume, func(at int64) bool { return at>>60 < 2 || at>>60 == 6 }, false},
		{"no index", ext4With(t, "^dir_index"), func(int64) bool { return true }, true},
	} {
		root := mkdir(t, c.volume, c.name)
		flat(t, root, files)
		left := int64(files)
		for name, at := range positions(t, root) {
			if !c.keep(at) {
				left--
				if err := unix.Unlink(filepath.Join(root, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if left <= least || (left == files) != c.all {
			t.Fatalf("%s: %d are left", c.name, left)
		}
		for _, threads := range []int{1, 2, 8} {
			label := fmt.Sprintf("u:r:t:s0:c%d", threads)
			r, err := tree(t.Context(), root, label, Options{Workers: threads}, as(m))
			if err != nil || !r.Complete || r.Seen != left+1 || r.Written != left+1 {
				t.Errorf("%s, %d threads, of %d: %+v, %v", c.name, threads, left+1, r, err)
			}
			if n := len(bearing(t, root, label)); int64(n) != left+1 {
				t.Errorf("%s, %d threads: %d of %d have the label", c.name, threads, n, left+1)
			}
		}
	}
}

// positions are those of the names in dir.
func positions(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	fd, buf, all := openedAt(t, sys.AtFdcwd, dir), make([]byte, bufferSize), map[string]int64{}
	defer sys.Close(fd)
	for at := int64(0); ; {
		n, e := sys.Getdents(fd, buf)
		if e != 0 {
			t.Fatal(e)
		}
		if n == 0 {
			return all
		}
		for rest := buf[:n]; len(rest) > 0; {
			r, length, err := sys.Parse(rest)
			if err != nil {
				t.Fatal(err)
			}
			if !sys.IsDot(r.Name) {
				all[string(r.Name)] = at
			}
			at, rest = sys.After(rest), rest[length:]
		}
	}
}

// TestManyNames: a directory with more names in one bucket than the budget holds is
// read about twice; all is labelled, and each name counts once.
func TestManyNames(t *testing.T) {
	treetest.Need(t, "ext4", "strace")
	const files = 4000
	root := mkdir(t, treetest.Fresh(t, "ext4"), "root")
	many := mkdir(t, root, "many")
	for i := range files {
		if err := unix.Mknod(fmt.Sprintf("%s/%0250d", many, i), unix.S_IFREG|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	calls, out, err := treetest.TraceCmd(t, child(t, "sort", root))
	if want := fmt.Sprintf("%d entries", files+2); err != nil || !bytes.Contains(out, []byte(want)) {
		t.Fatalf("want %s: %v\n%s", want, err, out)
	}
	readings := len(treetest.Select(calls, func(c treetest.Call) bool { return c.Name == "getdents64" && filepath.Base(c.Dir) == "many" }))
	if once := files*280/readSize + 2; readings < once/2 || readings > 5*once/2 {
		t.Errorf("%d readings of a directory that takes %d", readings, once)
	}
	if n := len(bearing(t, root, newLabel)); n != files+2 {
		t.Errorf("%d have the label", n)
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
			if err := unix.Mknod(fmt.Sprintf("%s/%0255d", dir, j), unix.S_IFREG|0o600, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, what := range []string{"line", "line-renamed"} {
		cmd := child(t, what, root)
		cmd.Args = append([]string{"sh", "-c", `ulimit -n 64 && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%.3000s", what, err, out)
		}
	}
}

// inSlice reports whether the worker that calls Throttle labels a slice.
func inSlice() bool {
	buf := make([]byte, 1<<16)
	return strings.Contains(string(buf[:runtime.Stack(buf, false)]), "(*worker).labelSlice(")
}

// lined labels root, whose directories are large, with two workers. The first slice
// waits until all the other directories are in line.
func lined(t *testing.T, root string, rename bool) {
	dirs, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	all := int64(len(dirs) * (1 + guessAfter))
	var progress Progress
	seen := func() int64 {
		s, _ := progress.State()
		return s.Seen
	}
	var failed atomic.Bool
	var once sync.Once
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	wait := func() {
		for seen() < all && !failed.Load() && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		if failed.Load() {
			cancel() // it need not fail on all of them
		}
		for _, d := range dirs {
			if rename {
				old := filepath.Join(root, d.Name())
				if err := os.Rename(old, old+"-renamed"); err != nil {
					t.Error(err)
				}
			}
		}
	}
	named := map[string]bool{}
	label := newLabel
	if rename {
		label = oldLabel
	}
	r, err := tree(ctx, root, label, Options{
		Workers: 2, Progress: &progress,
		Throttle: func(context.Context, int) error {
			if inSlice() {
				once.Do(wait)
			}
			return nil
		},
		Trace: &Trace{Failure: func(err error) {
			failed.Store(true)
			if at := (*fs.PathError)(nil); errors.As(err, &at) {
				named[at.Path] = errors.Is(err, syscall.ESTALE)
			}
		}},
	}, as(capabilities{kernel: walk.Kernel{Sorting: order.Sorting{From: 1, Budget: order.Ample.Budget}}, openat2: true, clones: true}))
	adds(t, r)
	wrong := 0
	for _, d := range dirs {
		path := filepath.Join(root, d.Name())
		if rename {
			path += "-renamed"
		}
		entries := treetest.Count(t, path).All - 1
		if n := len(bearing(t, path, label)) - 1; int64(n) != entries {
			wrong++
			if !named[filepath.Join(root, d.Name())] {
				t.Errorf("%d of %d entries of %s have the label, and it is not named", n, entries, path)
			}
		}
	}
	if wrong != len(named) || r.Failed != int64(wrong) || r.Complete != (wrong == 0) || (err == nil) != (wrong == 0) || rename != (wrong > 0) {
		t.Errorf("%d wrong, %d named: %+v, %v", wrong, len(named), r, err)
	}
}
