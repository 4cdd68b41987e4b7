// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

const childEnv = "FASTLABEL_TEST_CHILD"

// child prepares this program to run TestChild as another process.
func child(t *testing.T, what, path string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	treetest.Must(t, err)
	cmd := exec.Command(self, "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childEnv+"="+what+":"+path, "TMPDIR="+t.TempDir(),
		"FASTLABEL_MOUNT_NS=") // a namespace of its own: its mounts go with it
	return cmd
}

// TestChild is what other processes do in the tests; in itself it is none.
func TestChild(t *testing.T) {
	what, path, _ := strings.Cut(os.Getenv(childEnv), ":")
	switch what {
	case "label", "sync":
		r, err := Tree(t.Context(), path, newLabel, &Options{Sync: what == "sync", Trace: &Trace{Failure: func(err error) { fmt.Println("failed:", err) }}})
		fmt.Printf("report: %+v\nerror: %v\n", r, err)
	case "hidden":
		s, err := Inspect(path, oldLabel, SkipRoot)
		r, _ := Tree(t.Context(), path, oldLabel, &Options{Skip: SkipRoot})
		if s.Labelled || !errors.Is(err, syscall.EPERM) || r.Trusted || r.Right < 4 || len(r.Notes) == 0 {
			t.Errorf("%+v, %v, %+v", s, err, r)
		}
	case "stale 0 true", "stale 1 true", "stale 2 true", "stale 0 false", "stale 1 false", "stale 2 false":
		c := probe()
		c.kernel.Way, c.stale = sys.Way(what[6]-'0'), strings.HasSuffix(what, "true")
		if r, err := tree(t.Context(), path, newLabel, Options{}, as(c)); err != nil || r.Right != r.Seen {
			t.Errorf("%+v, %v", r, err)
		}
	case "line":
		lined(t, path)
	case "volumes":
		manyVolumes(t, path)
	case "frozen":
		frozenVolumes(t, path)
	case "probe dead":
		probeDead(t, path)
	case "hold":
		_, err := Tree(t.Context(), path, newLabel, &Options{Trace: &Trace{Change: func(string, string, string) {
			fmt.Println("held")
			time.Sleep(time.Hour) // until it is killed
		}}})
		t.Error(err)
	}
}

// holdLock has another process begin a run of root, which has the lock until that is killed.
func holdLock(t *testing.T, root string) (kill func()) {
	t.Helper()
	cmd := child(t, "hold", root)
	out, err := cmd.StdoutPipe()
	treetest.Must(t, err)
	treetest.Must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	kill = sync.OnceFunc(func() {
		treetest.Check(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	})
	t.Cleanup(kill)
	return kill
}

// TestKilledHolder: a waiting call says so, goes when its context ends, and
// the lock goes with the process that holds it.
func TestKilledHolder(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), plain)
	kill := holdLock(t, root)
	before := treetest.Snapshot(t, root+"/...")
	ctx, cancel := context.WithTimeout(t.Context(), treetest.Patience)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	waits := 0
	r, err := Tree(ctx, root, newLabel, &Options{Trace: &Trace{Wait: func() { // a busy machine may come to it late
		waits++
		time.AfterFunc(300*time.Millisecond, func() { end(context.DeadlineExceeded) })
	}}})
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil || r.Seen != 0 || r.Complete || waits != 1 {
		t.Errorf("%+v, %v, told %d times", r, err, waits)
	}
	if d := treetest.Diff(before, treetest.Snapshot(t, root+"/...")); len(d) > 0 {
		t.Errorf("a call without the lock touched:\n%s", lines(d))
	}
	kill()
	treetest.Returns(t, "the lock of who is dead", func() { r, err = Tree(t.Context(), root, newLabel, nil) })
	if err != nil || !r.Complete || r.Interrupted != newLabel || len(bearing(t, root, newLabel)) != 46 {
		t.Errorf("after the kill: %+v, %v", r, err)
	}
}

// TestOwnersLock: a lock that the volume's owner holds on it blocks nobody.
func TestOwnersLock(t *testing.T) {
	root := grow(t, on(t, "ext4"), plain)
	for _, p := range []string{root, filepath.Join(root, "f00")} {
		f, err := os.Open(p)
		treetest.Must(t, err)
		defer f.Close() // only read
		treetest.Must(t, syscall.Flock(int(f.Fd()), unix.LOCK_EX))
	}
	ctx, cancel := context.WithTimeout(t.Context(), treetest.Patience)
	defer cancel()
	r, err := Tree(ctx, root, newLabel, &Options{Trace: &Trace{Wait: func() { t.Error("it waits") }}})
	if err != nil || r.Written != 46 {
		t.Errorf("%+v, %v", r, err)
	}
}
