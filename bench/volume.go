// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// volume is a scratch filesystem, in a sparse file but for tmpfs, slowfs and slowdisk.
type volume struct {
	fs     string
	image  string
	mount  string
	server *exec.Cmd // of a slowfs or a slowdisk
	loop   string    // the device of a slowdisk
}

// makers are the commands that make a filesystem in a file; %s is for what the
// cell adds. An ext4 whose inode tables are still being zeroed by the kernel
// would be busy by itself: the mount below leaves them.
var makers = map[string][]string{
	"ext4":  {"mkfs.ext4", "-q", "-F"},
	"xfs":   {"mkfs.xfs", "-q", "-f"},
	"btrfs": {"mkfs.btrfs", "-q", "-f"},
}

// newVolume makes and mounts a filesystem of that size (as truncate -s takes
// it) in dir. inodes is for how many ext4 must have room.
func newVolume(dir, fs, size string, inodes int) (*volume, error) {
	v := &volume{fs: fs, image: filepath.Join(dir, fs+".img"), mount: filepath.Join(dir, fs)}
	if err := os.Mkdir(v.mount, 0o755); err != nil {
		return nil, err
	}
	if fs == "tmpfs" {
		return v, run("mount", "-t", "tmpfs", "-o", "size=90%,nr_inodes=0", "fastlabel-bench", v.mount)
	}
	maker, ok := makers[fs]
	if !ok {
		return nil, fmt.Errorf("no such filesystem: %s", fs)
	}
	if err := run("truncate", "-s", size, v.image); err != nil {
		return nil, err
	}
	if fs == "ext4" && inodes > 3_000_000 {
		maker = append(maker[:len(maker):len(maker)], "-N", fmt.Sprint(inodes*11/10))
	}
	if err := run(append(maker[:len(maker):len(maker)], v.image)...); err != nil {
		return nil, err
	}
	return v, v.attach()
}

func (v *volume) attach() error {
	options, what := "loop", v.image
	if v.loop != "" {
		options, what = "defaults", v.loop
	}
	if v.fs == "ext4" {
		options += ",noinit_itable"
	}
	return run("mount", "-o", options, what, v.mount)
}

// rest lets what was written reach the disk, and empties the journal.
func (v *volume) rest() error {
	switch v.fs {
	case "tmpfs":
		return nil
	case "slowfs":
		time.Sleep(1100 * time.Millisecond) // the kernel forgets names after a second
		return nil
	}
	fd, err := unix.Open(v.mount, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const freeze, thaw = 0xc0045877, 0xc0045878 // FIFREEZE, FITHAW of linux/fs.h
	if err := unix.IoctlSetInt(fd, freeze, 0); err != nil {
		return fmt.Errorf("FIFREEZE %s: %w", v.mount, err)
	}
	if err := unix.IoctlSetInt(fd, thaw, 0); err != nil {
		return fmt.Errorf("FITHAW %s: %w", v.mount, err)
	}
	return nil
}

// chill makes the filesystem forget what it has in memory, and the machine
// what it has of the image.
func (v *volume) chill() error {
	if v.image == "" {
		return nil
	}
	if err := run("umount", v.mount); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		return err
	}
	return v.attach()
}

func (v *volume) remove() error {
	var err error
	if v.fs != "slowfs" {
		err = run("umount", v.mount)
	}
	switch {
	case v.loop != "":
		// A mount namespace that another program made during the run has copies of both
		// mounts, so the device may outlive its disk: nobody looks at either.
		at := filepath.Dir(v.image)
		err = errors.Join(err, run("losetup", "-d", v.loop), unix.Unmount(at, unix.MNT_DETACH), v.server.Process.Kill())
		_ = v.server.Wait() // it was killed
		_ = os.Remove(at)
	case v.server != nil:
		err = errors.Join(err, v.server.Process.Signal(unix.SIGTERM), v.server.Wait())
	case v.image != "":
		_ = os.Remove(v.image)
	}
	_ = os.Remove(v.mount)
	return err
}

// run runs a command, and tells what it said if it failed.
func run(argv ...string) error {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
