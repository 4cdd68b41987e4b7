// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bufio"
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
	dir, log string
	cmd      *exec.Cmd
	stdin    io.Closer
	said     strings.Builder
}

// startDisk serves image, whose writes from now on are logged beside it.
func startDisk(image string) (*disk, error) {
	d := &disk{dir: image + ".fuse", log: image + ".log"}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		return nil, err
	}
	d.cmd = roleCmd("role-disk", image, d.log, d.dir)
	d.cmd.Stderr = &d.said
	// What kills the test's process group must leave the server its last words.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := d.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	d.stdin = stdin
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		return nil, errors.Join(fmt.Errorf("the disk said %q: %w", line, err), d.stop())
	}
	return d, nil
}

func (d *disk) file() string { return filepath.Join(d.dir, "disk") }

// mark gives the place in the log that has been reached.
func (d *disk) mark() (int64, error) {
	fi, err := os.Stat(d.log)
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// stop ends the server; the log stays. If something still holds the disk, the
// server ends all the same, and the disk is dead for its holder.
func (d *disk) stop() error {
	err := unmountAt(d.dir)
	if err != nil {
		err = errors.Join(err, d.stdin.Close())
	}
	if e := d.cmd.Wait(); e != nil {
		err = errors.Join(err, fmt.Errorf("disk: %w: %s", e, d.said.String()))
	}
	return errors.Join(err, os.Remove(d.dir))
}

// attach makes a loop device over a file. It lasts until the file returned and
// whatever is mounted from it are closed: the kernel clears it, also after a
// kill -9.
func attach(file string, direct bool) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	back, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer back.Close()
	how := unix.LoopConfig{Fd: uint32(back.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
	if direct {
		how.Info.Flags |= unix.LO_FLAGS_DIRECT_IO
	}
	for {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		dev, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(dev.Fd()), &how)
		if err == nil {
			return dev, nil
		}
		_ = dev.Close()
		if err != unix.EBUSY { // somebody else was faster
			return nil, fmt.Errorf("loop over %s: %w", file, err)
		}
	}
}

// mountFile mounts the filesystem in file at dir, with options.
func mountFile(kind, file, dir, options string, direct bool) error {
	dev, err := attach(file, direct)
	if err != nil {
		return err
	}
	defer dev.Close()
	if err := unix.Mount(dev.Name(), dir, kind, 0, options); err != nil {
		return fmt.Errorf("mount %s: %w", kind, err)
	}
	return nil
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
