// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"context"
	"errors"
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

// patient is how long a test waits for a condition.
const patient = 3 * time.Minute

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > patient {
			buf := make([]byte, 1<<20)
			t.Fatalf("%s: not after %v\n%s", what, patient, buf[:runtime.Stack(buf, true)])
		}
	}
}

// freezer stops all writing to the filesystem at dir, and lets it go on.
type freezer struct {
	dir    *os.File
	frozen atomic.Bool
}

func newFreezer(t *testing.T, dir string) *freezer {
	t.Helper()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	f := &freezer{dir: d}
	t.Cleanup(func() {
		f.thaw(t)
		_ = d.Close() // only read
	})
	return f
}

func (f *freezer) freeze(t *testing.T) {
	if f.ioctl(t, 0xc0045877) { // FIFREEZE of linux/fs.h
		f.frozen.Store(true)
	}
}

func (f *freezer) thaw(t *testing.T) {
	if f.frozen.Swap(false) {
		f.ioctl(t, 0xc0045878) // FITHAW
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
	if err != nil {
		t.Fatal(err)
	}
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
		r, err := Tree(ctx, root, newLabel, Options{Threads: 3, Throttle: func(context.Context, int) {
			once.Do(func() { ice.freeze(t) })
		}})
		adds(t, r)
		answer <- err
	}()
	until(t, "a worker hangs", func() bool { _, n := threads(t); return ice.frozen.Load() && n > 0 })
	cancel()
	hung := new(Hung)
	if err := <-answer; !errors.As(err, &hung) || len(hung.Calls) == 0 || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// The call that hangs may yet write: nothing else may.
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := Tree(short, root, oldLabel, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside a call that hangs: %v", err)
	}
	ice.thaw(t)
	nothingLeft(t, goroutines, files)
	for i, again := range []func(label string) error{
		func(label string) error { _, err := Tree(t.Context(), root, label, Options{}); return err },
		func(label string) error { return Chcon(root, label, true) },
		func(label string) error { _, err := new(Group).Tree(t.Context(), root, label); return err },
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
	until(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	until(t, "files are closed", func() bool { return openFiles(t) <= files })
}
