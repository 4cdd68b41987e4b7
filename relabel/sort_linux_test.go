// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// TestPartHeldUp: a worker is held up in a part of a directory that was sorted when its labels still
// seemed right, while another gathers the rest, which does not fit: what is left of the part is not
// taken for what was gathered.
func TestPartHeldUp(t *testing.T) {
	treetest.Need(t, "ext4")
	const low, high, bucket, most = 5000, 1400, 16384, 4400 // the part has fewer than the others
	volume := treetest.Fresh(t, "ext4")
	root := mkdir(t, volume, "root")
	large := mkdir(t, root, "large") // of which there is no second reading
	create := func(dir, format string, i int) uint64 {
		var st unix.Stat_t
		path := filepath.Join(dir, fmt.Sprintf(format, i))
		if err := errors.Join(unix.Mknod(path, unix.S_IFREG|0o600, 0), unix.Lstat(path, &st)); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}
	for i := range low {
		create(large, "low-name-%08d", i)
	}
	for i, beside := 0, mkdir(t, volume, "beside"); create(beside, "f%d", i) < bucket; i++ {
	}
	for i := range high {
		create(large, "high-%0240d", i)
	}
	dir, err := os.Open(large)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(guessAfter)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names[guessAfter/2:] {
		treetest.Set(t, large, name, newLabel)
	}
	var asked atomic.Int64
	var held atomic.Bool
	hold := func(ctx context.Context, n int) error {
		asked.Add(int64(n))
		if strings.Contains(string(debug.Stack()), "sortedRange") && held.CompareAndSwap(false, true) {
			for asked.Load() < most && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}
		return nil
	}
	r, err := tree(t.Context(), root, newLabel, Options{Workers: 2, Throttle: hold},
		as(capabilities{kernel: walk.Kernel{Sorting: order.Sorting{From: 1, Budget: 128 << 10}}, openat2: true}))
	adds(t, r)
	if !held.Load() {
		t.Error("no worker was held up: that shows nothing")
	}
	if n := len(bearing(t, root, newLabel)); err != nil || r.Seen != 2+low+high || n != 2+low+high {
		t.Errorf("%+v, %v; %d have the label", r, err, n)
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
				treetest.Must(t, unix.Unlink(filepath.Join(root, name)))
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
			treetest.Must(t, err)
			if !sys.IsDot(r.Name) {
				all[string(r.Name)] = at
			}
			at, rest = sys.After(rest), rest[length:]
		}
	}
}

// TestLine: large directories that wait to be sorted need no descriptors.
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
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.3000s", err, out)
	}
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
						return s.Seen >= int64(len(dirs)*(1+guessAfter))
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
