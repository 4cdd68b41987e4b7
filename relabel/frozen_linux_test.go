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
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
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

// hangs reports whether a thread is stuck in each of many looks: in one look it may as well
// be at a disk that is busy.
func hangs(t *testing.T) bool {
	t.Helper()
	for range 50 {
		if _, stuck := threads(t); stuck == 0 {
			return false
		}
		time.Sleep(2 * time.Millisecond)
	}
	return true
}

// TestThaw freezes a filesystem under a walk. When its calls have returned nothing
// of the run is left, and the next ones succeed.
func TestThaw(t *testing.T) {
	vol := treetest.Fresh(t, "ext4")
	root := grow(t, vol, "default label="+oldLabel+"\ndir .\ndir d%d x9\nfile d1/f%03d x200\nfile d2/f%03d x200\n")
	ice := newFreezer(t, vol)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var once sync.Once
	answer := make(chan error, 1)
	go func() {
		r, err := Tree(ctx, root, newLabel, &Options{Workers: 3, Throttle: func(context.Context, int) error {
			once.Do(func() { ice.freeze(t) })
			return nil
		}})
		adds(t, r)
		answer <- err
	}()
	treetest.Wait(t, "a worker hangs", func() bool { return ice.frozen.Load() && hangs(t) })
	cancel()
	hung := new(HungError)
	if err := <-answer; !errors.As(err, &hung) || len(hung.Calls) == 0 || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// The call that hangs may yet write: nothing else may.
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := Tree(short, root, oldLabel, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside a call that hangs: %v", err)
	}
	ice.thaw(t)
	nothingLeft(t, goroutines, files)
	for i, again := range []func(label string) error{
		func(label string) error { _, err := Tree(t.Context(), root, label, nil); return err },
		func(label string) error { return Chcon(root, label, true) },
		func(label string) error {
			_, err := new(Group).Tree(t.Context(), root, label, SkipNone)
			return err
		},
	} {
		label := []string{newLabel, oldLabel}[i%2]
		if err := again(label); err != nil || len(bearing(t, root, label)) != 410 {
			t.Errorf("call %d: %d of 410 are labelled, %v", i, len(bearing(t, root, label)), err)
		}
	}
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

// TestFrozenVolumes has the walks of 140 volumes hang. They take no more threads
// than the process may have workers, and keep no other volume waiting.
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

// TestFrozenFile: Chcon of one file that hangs keeps no run from beginning.
func TestFrozenFile(t *testing.T) {
	apart(t, "frozen file", treetest.Fresh(t, "ext4"))
}

func frozenFile(t *testing.T, vol string) {
	healthy := grow(t, on(t, "tmpfs"), plain)
	file := filepath.Join(grow(t, mkdir(t, vol, "v"), plain), "f00")
	ice := newFreezer(t, vol)
	treetest.Must(t, Chcon(file, oldLabel, false)) // what a process opens once is open
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	ice.freeze(t)
	answer := make(chan error, 1)
	go func() { answer <- Chcon(file, newLabel, false) }()
	SetMaxWorkers(1)
	treetest.Wait(t, "the call is known to hang", func() bool {
		_, hung, _ := process.Taken()
		return hung == 1
	})
	if r, err := Tree(t.Context(), healthy, newLabel, nil); err != nil || !r.Complete {
		t.Errorf("%+v, %v", r, err)
	}
	ice.thaw(t)
	treetest.Check(t, <-answer)
	nothingLeft(t, goroutines, files)
	taken(t, 0)
}

func frozenVolumes(t *testing.T, vol string) {
	const volumes = 140
	healthy := grow(t, on(t, "tmpfs"), plain)
	ice := newFreezer(t, vol)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var arrived atomic.Int64
	var all sync.WaitGroup
	frozen := make(chan struct{})
	for i := range volumes {
		root := grow(t, mkdir(t, vol, fmt.Sprint(i)), "default label="+oldLabel+"\ndir .\nfile f%d x9\n")
		all.Go(func() {
			var once sync.Once
			o := Options{Workers: 4, Throttle: func(context.Context, int) error {
				once.Do(func() { arrived.Add(1) })
				<-frozen
				return nil
			}}
			if _, err := Tree(ctx, root, newLabel, &o); !errors.As(err, new(*HungError)) {
				t.Error(err)
			}
		})
	}
	treetest.Wait(t, "all walk", func() bool { return arrived.Load() == volumes })
	ice.freeze(t)
	close(frozen)
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
		return hung >= volumes
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
	ice.thaw(t)
	nothingLeft(t, goroutines, files)
	taken(t, 0)
}

// TestWaitingVolumes: runs that wait for a volume's lock keep no other volume waiting.
func TestWaitingVolumes(t *testing.T) {
	apart(t, "waiting", on(t, "tmpfs"))
}

func waitingVolumes(t *testing.T, dir string) {
	root, other := grow(t, mkdir(t, dir, "v"), plain), grow(t, mkdir(t, dir, "w"), plain)
	if _, err := Tree(t.Context(), other, oldLabel, nil); err != nil { // what a process opens once is open
		t.Fatal(err)
	}
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	SetMaxWorkers(2)
	var once sync.Once
	begun, leave := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := Tree(t.Context(), root, newLabel, &Options{Workers: 1, Throttle: func(context.Context, int) error {
			once.Do(func() { close(begun) })
			<-leave
			return nil
		}}); err != nil {
			t.Error(err)
		}
	})
	<-begun
	told := make(chan struct{}, 1)
	all.Go(func() {
		if _, err := Tree(t.Context(), root, newLabel, &Options{Trace: &Trace{Wait: func() { told <- struct{}{} }}}); err != nil {
			t.Error(err)
		}
	})
	all.Go(func() {
		treetest.Check(t, Chcon(root, newLabel, false))
	})
	<-told
	treetest.Wait(t, "both are known to wait", func() bool {
		_, hung, _ := process.Taken()
		return hung == 2
	})
	if r, err := Tree(t.Context(), other, newLabel, nil); err != nil || !r.Complete {
		t.Errorf("%+v, %v", r, err)
	}
	close(leave)
	all.Wait()
	nothingLeft(t, goroutines, files)
	taken(t, 0)
}
