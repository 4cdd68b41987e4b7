// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// Requests of linux/auto_fs.h.
const (
	autofsReady = 0x9360
	autofsFail  = 0x9361
)

// automount mounts an automount over the existing at, until the test ends, and
// counts how often it is triggered. Its daemon then mounts a tmpfs on it, with an
// entry "in", or with fails nothing.
func automount(t *testing.T, at string, fails bool) *atomic.Int32 {
	t.Helper()
	treetest.Need(t, "root")
	r, w, err := os.Pipe()
	treetest.Must(t, err)
	// Nothing that its daemon's process group does triggers it: it is given
	// to a group that this process is not in.
	group := os.Getpid()
	if group == syscall.Getpgrp() {
		group = os.Getppid()
	}
	data := fmt.Sprintf("fd=%d,pgrp=%d,minproto=5,maxproto=5,direct", w.Fd(), group)
	mounted(t, "autofs", at, data)
	w.Close() // the kernel has its own
	fd, err := unix.Open(at, unix.O_PATH|unix.O_CLOEXEC, 0)
	treetest.Must(t, err)
	top, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	treetest.Must(t, err)
	unix.Close(fd)
	n, ended := new(atomic.Int32), make(chan struct{})
	go func() {
		defer close(ended)
		defer unix.Close(top)
		packet := make([]byte, 512)
		for {
			if _, err := r.Read(packet); err != nil {
				return
			}
			n.Add(1)
			answer := uint(autofsReady)
			if fails {
				answer = autofsFail
			} else if err := mountOn(top); err != nil {
				t.Error(err)
				answer = autofsFail
			}
			token := binary.NativeEndian.Uint32(packet[8:])
			treetest.Check(t, unix.IoctlSetInt(top, answer, int(token)))
		}
	}()
	t.Cleanup(func() { r.Close(); <-ended })
	return n
}

// mountOn mounts a tmpfs with one entry on the open directory at, without a look-up
// of a path, which would wait for the very mount.
func mountOn(at int) error {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return err
	}
	tree, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := unix.Mknodat(tree, "in", unix.S_IFREG|0o600, 0); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// TestAutomountInside: an automount in the tree is named and not triggered; what
// it has mounted before is labelled.
func TestAutomountInside(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir auto\ndir on\nfile f\n")
	auto, triggered := filepath.Join(root, "auto"), filepath.Join(root, "on")
	n, m := automount(t, auto, true), automount(t, triggered, false)
	if _, err := os.ReadDir(triggered); err != nil || m.Load() != 1 {
		t.Fatalf("triggered %d times: %v", m.Load(), err)
	}
	defer unix.Unmount(triggered, unix.MNT_DETACH)
	named := skips(t, root, "auto")
	if n.Load() != 0 || !strings.Contains(named["auto"], "autofs") {
		t.Errorf("triggered %d times; %v", n.Load(), named)
	}
	if got := labelOf(t, filepath.Join(triggered, "in")); got != newLabel {
		t.Errorf("what is mounted on an automount has %q", got)
	}
	if _, err := os.ReadDir(auto); err == nil || n.Load() != 1 {
		t.Errorf("control: triggered %d times, %v", n.Load(), err)
	}
}

// TestAutomountRoot: a root that is an automount is what that mounts.
func TestAutomountRoot(t *testing.T) {
	at := on(t, "tmpfs")
	n := automount(t, at, true)
	if r, err := Tree(t.Context(), at, newLabel, nil); !errors.Is(err, os.ErrNotExist) || pathOf(err) != at || n.Load() != 1 {
		t.Errorf("nothing is mounted: %+v, %v, triggered %d times", r, err, n.Load())
	}
	for _, slash := range []string{"", "/"} {
		at := on(t, "tmpfs")
		n := automount(t, at, false)
		defer unix.Unmount(at, unix.MNT_DETACH)
		if ok, err := isLabelled(at+slash, newLabel, SkipRoot); ok || err != nil || n.Load() != 1 {
			t.Errorf("triggered %d times: %t, %v", n.Load(), ok, err)
		}
		if r, err := Tree(t.Context(), at+slash, newLabel, nil); err != nil || n.Load() != 1 || labelOf(t, filepath.Join(at, "in")) != newLabel {
			t.Errorf("triggered %d times: %+v, %v", n.Load(), r, err)
		}
	}
}
