// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// FIFREEZE and FITHAW of linux/fs.h.
const (
	freeze = 0xc0045877
	thaw   = 0xc0045878
)

// apart has another process do what, which is a case of TestChild.
func apart(t *testing.T, what, path string) {
	t.Helper()
	cmd := child(t, what, path)
	cmd.Args = append(cmd.Args, "-test.v")
	t.Log(treetest.Output(t, cmd))
}

// freezer stops all writing to the filesystem at dir, and lets it go on.
type freezer struct {
	dir    *os.File
	frozen atomic.Bool
}

func newFreezer(t *testing.T, dir string) *freezer {
	t.Helper()
	d, err := os.Open(dir)
	treetest.Must(t, err)
	f := &freezer{dir: d}
	t.Cleanup(func() {
		f.thaw(t)
		_ = d.Close() // only read
	})
	return f
}

func (f *freezer) freeze(t *testing.T) {
	if f.ioctl(t, freeze) {
		f.frozen.Store(true)
	}
}

func (f *freezer) thaw(t *testing.T) {
	if f.frozen.Swap(false) {
		f.ioctl(t, thaw)
	}
}

func (f *freezer) ioctl(t *testing.T, request uintptr) bool {
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, f.dir.Fd(), request, 0)
	if e != 0 {
		t.Errorf("ioctl %#x: %v", request, e)
	}
	return e == 0
}

// threads counts the threads of this process, and those of them that wait in the
// kernel and cannot be interrupted.
func threads(t *testing.T) (all, stuck int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/self/task/*/stat")
	treetest.Must(t, err)
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		all++
		if at := bytes.LastIndex(text, []byte(") ")); at > 0 && text[at+2] == 'D' {
			stuck++
		}
	}
	return all, stuck
}

// nothingLeft waits until no more goroutines and open files are there than before.
func nothingLeft(t *testing.T, goroutines, files int) {
	t.Helper()
	treetest.Wait(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	treetest.Wait(t, "files are closed", func() bool { return openFiles(t) <= files })
}

// TestManyVolumes labels 500 volumes at once where the process may have 256
// descriptors.
func TestManyVolumes(t *testing.T) {
	apart(t, "volumes", on(t, "tmpfs"))
}

func manyVolumes(t *testing.T, dir string) {
	few := syscall.Rlimit{Cur: 256, Max: 256}
	treetest.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	const volumes = 500
	roots := make([]string, volumes)
	for i := range roots {
		roots[i] = grow(t, mkdir(t, dir, fmt.Sprint(i)), "default label="+oldLabel+"\ndir .\ndir d\nfile d/f%d x4\n")
	}
	var all sync.WaitGroup
	for _, root := range roots {
		all.Go(func() {
			r, err := Tree(t.Context(), root, newLabel, nil)
			if err != nil || !r.Complete || r.Written != 6 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	all.Wait()
}

// TestFrozenVolumes has the walks of 140 volumes hang, a call for one file, and one wait
// for a volume's lock. They take no more threads than the process may have workers, and keep no other volume waiting. When their calls
// have returned nothing of them is left, and the next run succeeds.
func TestFrozenVolumes(t *testing.T) {
	vol := treetest.Fresh(t, "ext4")
	f, err := os.Open(vol)
	treetest.Must(t, err)
	defer func() {
		_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), thaw, 0) // if the other could not
		_ = f.Close()                                                 // only read
	}()
	apart(t, "frozen", vol)
}

func frozenVolumes(t *testing.T, vol string) {
	const volumes = 140
	const text = "default label=" + oldLabel + "\ndir .\nfile f%d x9\n"
	healthy := grow(t, on(t, "tmpfs"), plain)
	file := filepath.Join(grow(t, mkdir(t, vol, "single"), plain), "f00")
	treetest.Must(t, Chcon(file, oldLabel, false)) // what a process opens once is open
	ice := newFreezer(t, vol)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var root string
	var arrived atomic.Int64
	var all sync.WaitGroup
	frozen := make(chan struct{})
	for i := range volumes {
		root = grow(t, mkdir(t, vol, fmt.Sprint(i)), text)
		at := root
		all.Go(func() {
			var once sync.Once
			o := Options{Workers: 4, Throttle: func(context.Context, int) error {
				once.Do(func() { arrived.Add(1) })
				<-frozen
				return nil
			}}
			hung := new(HungError)
			if _, err := Tree(ctx, at, newLabel, &o); !errors.As(err, &hung) || len(hung.Calls) == 0 || !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	treetest.Wait(t, "all walk", func() bool { return arrived.Load() == volumes })
	ice.freeze(t)
	close(frozen)
	single := make(chan error, 1)
	go func() { single <- Chcon(file, newLabel, false) }()
	all.Go(func() {
		if _, err := Tree(ctx, root, oldLabel, nil); !errors.Is(err, context.Canceled) || errors.As(err, new(*HungError)) {
			t.Errorf("who waits for the lock: %v", err)
		}
	})
	most := 0
	watch := func() (stuck int) {
		n, stuck := threads(t)
		most = max(most, n)
		return stuck
	}
	treetest.Wait(t, "all hang", func() bool { return watch() >= volumes })
	treetest.Wait(t, "all hang apart", func() bool {
		watch()
		_, hung, _ := process.Taken()
		return hung > volumes+1
	})
	// Others are as quick as ever, though each of the budget's workers hangs.
	for range 50 {
		label := []string{newLabel, oldLabel}[watch()%2]
		if r, err := Tree(t.Context(), healthy, label, nil); err != nil || !r.Complete {
			t.Fatalf("%+v, %v", r, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if most > defaultWorkers+20 { // those of Go's runtime
		t.Errorf("%d threads", most)
	}
	t.Logf("%d threads at most", most)
	cancel()
	all.Wait()
	// The call that hangs may yet write: nothing else may.
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := Tree(short, root, oldLabel, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside a call that hangs: %v", err)
	}
	ice.thaw(t)
	treetest.Check(t, <-single)
	nothingLeft(t, goroutines, files)
	taken(t, 0)
	if r, err := Tree(t.Context(), root, newLabel, nil); err != nil || len(bearing(t, root, newLabel)) != 10 {
		t.Errorf("afterwards: %+v, %v", r, err)
	}
}
