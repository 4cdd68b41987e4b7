// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// A disk whose power can be cut. There is no device-mapper where this runs, so
// this stands in for dm-log-writes:
//
//	command, bystander
//	ext4, xfs, btrfs
//	/dev/loopN          a flush (and FUA) becomes an fsync of the file
//	DIR/disk            served by FUSE, from a process of its own
//	IMAGE and LOG       each write with its data, each flush, in order
//
// The server is another process than the test: the test's threads wait for the
// filesystem, which waits for the server, and the garbage collector of one
// waits for all its threads.
//
// What is logged is what the disk has acknowledged, in the order in which it
// did. A write that stands before a flush is on the platter after it; of those
// that stand behind the last flush any may be lost: see replay.

// logHead precedes each write's data in the log. A flush is a head alone.
type logHead struct {
	Flush  uint32
	Length uint32
	Offset int64
}

var logHeadSize = int64(binary.Size(logHead{}))

// diskNode is the one file that the server serves.
type diskNode struct {
	fusefs.Inode
	mu    sync.Mutex // the log's order is the image's
	image *os.File
	log   *os.File
	size  int64
}

var (
	_ fusefs.NodeOpener    = (*diskNode)(nil)
	_ fusefs.NodeGetattrer = (*diskNode)(nil)
	_ fusefs.NodeReader    = (*diskNode)(nil)
	_ fusefs.NodeWriter    = (*diskNode)(nil)
	_ fusefs.NodeFsyncer   = (*diskNode)(nil)
)

func (d *diskNode) Open(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, 0
}

func (d *diskNode) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = fuse.S_IFREG|0o600, uint64(d.size)
	return 0
}

func (d *diskNode) Read(_ context.Context, _ fusefs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := d.image.ReadAt(dest, off)
	if err != nil && err != io.EOF {
		return nil, fusefs.ToErrno(err)
	}
	return fuse.ReadResultData(dest[:n]), 0
}

func (d *diskNode) Write(_ context.Context, _ fusefs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.image.WriteAt(data, off); err != nil {
		return 0, fusefs.ToErrno(err)
	}
	if err := d.append(logHead{Length: uint32(len(data)), Offset: off}, data); err != nil {
		return 0, fusefs.ToErrno(err)
	}
	return uint32(len(data)), 0
}

func (d *diskNode) Fsync(context.Context, fusefs.FileHandle, uint32) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fusefs.ToErrno(d.append(logHead{Flush: 1}, nil))
}

func (d *diskNode) append(h logHead, data []byte) error {
	entry, err := binary.Append(nil, binary.LittleEndian, h)
	if err != nil {
		return err
	}
	_, err = d.log.Write(append(entry, data...))
	return err
}

// serveDisk is the server: "role-disk IMAGE LOG DIR". It says when it is ready
// and ends with its standard input, thus also when the test is killed.
func serveDisk(args []string) error {
	if len(args) != 3 {
		return errors.New("role-disk IMAGE LOG DIR")
	}
	image, err := os.OpenFile(args[0], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(args[1], os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	fi, err := image.Stat()
	if err != nil {
		return err
	}
	disk := &diskNode{image: image, log: log, size: fi.Size()}
	root := &fusefs.Inode{}
	forEver := time.Hour
	server, err := fusefs.Mount(args[2], root, &fusefs.Options{
		MountOptions: fuse.MountOptions{
			DirectMountStrict: true, DisableXAttrs: true, FsName: "disk", Name: "torture", MaxWrite: 1 << 20,
		},
		AttrTimeout: &forEver, EntryTimeout: &forEver,
		OnAdd: func(ctx context.Context) {
			root.AddChild("disk", root.NewPersistentInode(ctx, disk, fusefs.StableAttr{Mode: fuse.S_IFREG}), false)
		},
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	gone := make(chan error, 2)
	go func() {
		server.Wait() // the test has unmounted it
		gone <- nil
	}()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		gone <- pull(args[2])
	}()
	return <-gone
}

// pull fails all that waits for the disk at dir, and all that comes. A server
// whose test was killed is the last in the mount namespace, so the kernel
// unmounts the filesystem above the disk as the server exits, before it closes
// the server's connection: without this they would wait for each other for ever.
func pull(dir string) error {
	if err := unix.Unmount(dir, unix.MNT_FORCE); err != nil && err != unix.EBUSY {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}

// disk is the test's side of a server.
type disk struct {
	served
	dir, log string
}

// startDisk serves image, whose writes from now on are logged beside it.
func startDisk(t *testing.T, image string) *disk {
	t.Helper()
	dir, log := image+".fuse", image+".log"
	treetest.Must(t, os.Mkdir(dir, 0o700))
	return &disk{serve(t, "role-disk", image, log, dir), dir, log}
}

func (d *disk) file() string { return filepath.Join(d.dir, "disk") }

// mark gives the place in the log that has been reached.
func (d *disk) mark(t *testing.T) int64 {
	t.Helper()
	fi, err := os.Stat(d.log)
	treetest.Must(t, err)
	return fi.Size()
}

// stop ends the server; the log stays. If something still holds the disk, the
// server ends all the same, and the disk is dead for its holder.
func (d *disk) stop() error {
	err := unmountAt(d.dir)
	if err != nil {
		err = errors.Join(err, d.in.Close())
	}
	return errors.Join(err, d.cmd.Wait(), os.Remove(d.dir))
}

// mountFile mounts the filesystem in file at dir, with options. The loop device lasts until
// that is unmounted.
func mountFile(kind, file, dir, options string, direct bool) error {
	out, err := exec.Command("losetup", "--find", "--show", "--direct-io="+map[bool]string{true: "on", false: "off"}[direct], file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("loop over %s: %w: %s", file, err, out)
	}
	dev := strings.TrimSpace(string(out))
	mounted := os.NewSyscallError("mount "+kind, unix.Mount(dev, dir, kind, 0, options))
	return errors.Join(mounted, run("", "losetup", "--detach", dev))
}

// unmountAt unmounts dir. It waits a while for its holders: a child of another
// test holds, between fork and exec, all that was open when it was forked. What
// is held for longer is detached and reported.
func unmountAt(dir string) error {
	for end := time.Now().Add(treetest.Patience); ; time.Sleep(time.Millisecond) {
		err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW)
		if err == nil {
			return nil
		}
		if err != unix.EBUSY || time.Now().After(end) {
			return errors.Join(fmt.Errorf("unmount %s: %w", dir, err), unix.Unmount(dir, unix.MNT_DETACH))
		}
	}
}
