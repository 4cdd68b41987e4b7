// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

const mib = 1 << 20

// bound is one of the trees that must not need memory or descriptors of their
// own size (L1, L2).
type bound struct {
	name    string
	fs      string
	entries int // without the root
	grow    func(t *testing.T, root string, n int)
	memory  int // MiB
	files   []int
}

// TestBounds labels trees of millions of entries, with the usual limit of open
// files and with 32, and measures memory and descriptors at their highest.
func TestBounds(t *testing.T) {
	for _, b := range []bound{
		{"one directory", "tmpfs", pick(300_000, 10_000_000, 10_000_000), growFlat, 64, []int{1024}},
		{"each in the one before", "tmpfs", pick(50_000, 1_000_000, 1_000_000), growDeep, 128, []int{1024, 32}},
		{"two in each, the deeper first", "tmpfs", pick(4_000, 40_000, 200_000), growComb, 128, []int{1024, 32}},
		{"directories side by side", "tmpfs", pick(50_000, 1_000_000, 1_000_000), growWide, 128, []int{1024, 32}},
	} {
		t.Run(strings.ReplaceAll(b.name, " ", "-"), func(t *testing.T) {
			root := roomy(t, b.fs, b.entries)
			b.grow(t, root, b.entries)
			rows := make([]row, len(b.files))
			for i, files := range b.files {
				rows[i] = b.measure(t, root, files, []string{oldLabel, newLabel}[i%2])
			}
			b.peer(t, root, &rows[0])
			for _, r := range rows {
				r.add(t)
			}
		})
	}
}

func (b bound) measure(t *testing.T, root string, files int, label string) row {
	t.Helper()
	// Each worker has descriptors of its own, and how many are at work would be up to
	// what else the machine does.
	cmd := exec.Command("prlimit", "--nofile="+strconv.Itoa(files), fastlabel(t), "-T", "2", "--label", label, root)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	begin := time.Now()
	treetest.Must(t, cmd.Start())
	var done atomic.Bool
	most := make(chan int)
	go func() { most <- descriptors(cmd.Process.Pid, &done) }()
	err := cmd.Wait()
	done.Store(true)
	open := <-most
	used := int(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
	r := row{
		check: "L1, L2 bounds: " + b.name, where: fmt.Sprintf("%s, %d entries, ulimit -n %d", b.fs, b.entries, files), runs: 1,
		note: fmt.Sprintf("%d MiB of %d, %d descriptors, %.1f s; no control: a measurement", used, b.memory, open, time.Since(begin).Seconds()),
	}
	if err != nil || used > b.memory || open > 64 {
		r.bad++
		t.Errorf("%v, %d MiB, %d descriptors\n%s", err, used, open, out.String())
	}
	if n := sample(t, root, label); n > 0 {
		r.bad++
		t.Errorf("%d of the entries looked at are wrong", n)
	}
	return r
}

// peer does the same with go-selinux. Where it fails or takes more memory it is
// the row's control; where it does neither, figures beside ours.
func (b bound) peer(t *testing.T, root string, r *row) {
	t.Helper()
	begin := time.Now()
	cmd := gochcon(nextLabel, root)
	out, err := cmd.CombinedOutput()
	used := int(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
	took := fmt.Sprintf("go-selinux: %d MiB, %.1f s", used, time.Since(begin).Seconds())
	if err != nil {
		took += ", failed (file name too long)"
		if !strings.Contains(string(out), "file name too long") {
			t.Errorf("go-selinux: %v\n%.200s", err, out)
		}
	}
	r.note = strings.TrimSuffix(r.note, "; no control: a measurement") + "; " + took
	if err != nil || used > b.memory {
		r.control, r.controlRuns, r.controlBad = "go-selinux", 1, 1
	}
}

// descriptors is the highest number of open descriptors that was seen.
func descriptors(pid int, done *atomic.Bool) (most int) {
	for !done.Load() {
		if open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); err == nil {
			most = max(most, len(open))
		}
		time.Sleep(2 * time.Millisecond)
	}
	return most
}

// sample reads labels down from root: of each directory its first few entries,
// and then deeper by the last that is a directory. It says how many are wrong.
func sample(t *testing.T, root, label string) (wrong int) {
	t.Helper()
	fd := open(t, unix.AT_FDCWD, root)
	for depth := 0; depth < 5000; depth++ {
		f := os.NewFile(uintptr(fd), "")
		names, err := f.Readdirnames(50)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		next := -1
		for _, name := range names {
			buf := make([]byte, 256)
			at := fmt.Sprintf("/proc/self/fd/%d/%s", fd, name)
			if n, err := unix.Lgetxattr(at, "security.selinux", buf); err != nil || string(buf[:max(n, 0)]) != label {
				wrong++
			}
			if down, err := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
				if next >= 0 {
					_ = unix.Close(next)
				}
				next = down
			}
		}
		_ = f.Close()
		if next < 0 {
			return wrong
		}
		fd = next
	}
	_ = unix.Close(fd)
	return wrong
}

// roomy makes a directory on a filesystem that holds n entries.
func roomy(t *testing.T, fs string, n int) string {
	t.Helper()
	dir := treetest.Fresh(t, fs)
	treetest.Must(t, unix.Mount("", dir, "", unix.MS_REMOUNT, fmt.Sprintf("size=%d,nr_inodes=0,mode=0755", mib+int64(n)*4096)))
	root := filepath.Join(dir, "volume")
	treetest.Must(t, os.Mkdir(root, 0o755))
	return root
}

func open(t *testing.T, dir int, name string) int {
	t.Helper()
	fd, err := unix.Openat(dir, name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	treetest.Must(t, err)
	return fd
}

func growFlat(t *testing.T, root string, n int) {
	fd := open(t, unix.AT_FDCWD, root)
	defer unix.Close(fd)
	for i := range n {
		treetest.Must(t, unix.Mknodat(fd, fmt.Sprintf("f%08d", i), unix.S_IFREG|0o644, 0))
	}
}

func growWide(t *testing.T, root string, n int) {
	fd := open(t, unix.AT_FDCWD, root)
	defer unix.Close(fd)
	for i := range n {
		treetest.Must(t, unix.Mkdirat(fd, fmt.Sprintf("d%08d", i), 0o755))
	}
}

func growDeep(t *testing.T, root string, n int) { descend(t, root, n) }

// growComb makes another directory beside each, which a walk meets first and
// must come back for.
func growComb(t *testing.T, root string, n int) { descend(t, root, n/2, "beside") }

func descend(t *testing.T, root string, n int, beside ...string) {
	fd := open(t, unix.AT_FDCWD, root)
	for range n {
		for _, name := range append([]string{"d"}, beside...) {
			treetest.Must(t, unix.Mkdirat(fd, name, 0o755))
		}
		next := open(t, fd, "d")
		_ = unix.Close(fd)
		fd = next
	}
	_ = unix.Close(fd)
}
