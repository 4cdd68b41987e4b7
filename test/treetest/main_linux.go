// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	filterEnv    = "FASTLABEL_FILTER"   // "3:463=ask,188=38": see filter
	namespaceEnv = "FASTLABEL_MOUNT_NS" // the namespace that Main made
)

// bench is what Main sets up and Each, Fresh and Need use.
var bench struct {
	why     error  // why mounts cannot be made; nil if they can
	scratch string // a tmpfs for mount points, gone with the namespace
	kinds   map[string]*shared
}

// errNoMain is the answer where TestMain did not call Main.
var errNoMain = errors.New("TestMain does not call treetest.Main")

// Main runs the tests of a package in a mount namespace of its own and gives
// the exit code. The program restarts itself in the namespace, so all its
// threads are in it, and no mount outlives the process: not after a panic,
// not after kill -9. (One empty directory may then be left in the temporary
// directory.) Without root there is no namespace, and tests that need mounts
// skip: see Need. A filesystem that is still in use when the tests have ended
// makes the code 1, for something leaked a descriptor.
//
// Main is also what Deny and Supervise run, in a child, to set the filter.
func Main(m *testing.M) int {
	if setting, ok := os.LookupEnv(filterEnv); ok {
		fmt.Fprintln(os.Stderr, "treetest: filter:", filterAndExec(setting))
		return 125
	}
	bench.kinds = map[string]*shared{}
	for _, kind := range []string{"ext4", "xfs", "btrfs", "tmpfs"} {
		k := &shared{}
		k.make = sync.OnceFunc(func() { k.dir, k.err = mountNew(kind) })
		bench.kinds[kind] = k
	}
	if bench.why = isolate(); bench.why == nil {
		bench.scratch, bench.why = mountScratch()
	}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(sig) { // as by nohup; what the tests start is told of it all the same
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	code := m.Run()
	for kind, k := range bench.kinds {
		if k.dir == "" {
			continue
		}
		if err := unmount(k.dir); err != nil {
			fmt.Fprintf(os.Stderr, "treetest: %s: %v\n", kind, err)
			code = max(code, 1)
		}
	}
	if bench.scratch != "" {
		// Detached, not unmounted: what holds it has been told of above.
		_ = unix.Unmount(bench.scratch, unix.MNT_DETACH)
		_ = os.Remove(bench.scratch)
	}
	return code
}

// isolate restarts the program in a private mount namespace, and returns nil
// in the program so started.
func isolate() error {
	here, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	if os.Getenv(namespaceEnv) == here {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	failed := make(chan error)
	go func() { failed <- isolateThread(self) }()
	return <-failed
}

// isolateThread starts self in a private mount namespace, or fails. The thread is never
// unlocked: it alone is elsewhere, and ends with its goroutine.
func isolateThread(self string) error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a private mount namespace: %w", err)
	}
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if errors.Is(err, unix.EINVAL) {
		err = privateRoot()
	}
	if err != nil {
		return fmt.Errorf("make all mounts private: %w", err)
	}
	there, err := os.Readlink("/proc/thread-self/ns/mnt")
	if err != nil {
		return err
	}
	if err := os.Setenv(namespaceEnv, there); err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, os.Environ())
}

// privateRoot makes all mounts of the calling thread's namespace private, and / a mount, in a
// chroot whose / is none, where MS_PRIVATE is refused.
func privateRoot() error {
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	ns, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(ns)
	root, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil { // out of the chroot
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	clone, err := unix.OpenTree(root, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(clone)
	if err := unix.MoveMount(clone, "", root, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return err
	}
	if err := errors.Join(unix.Fchdir(clone), unix.Chroot(".")); err != nil {
		return err
	}
	return unix.Chdir(wd)
}

func mountScratch() (string, error) {
	dir, err := os.MkdirTemp("", "fastlabel-treetest-")
	if err != nil {
		return "", err
	}
	if err := unix.Mount("treetest", dir, "tmpfs", 0, "mode=0755"); err != nil {
		return "", errors.Join(fmt.Errorf("mount tmpfs: %w", err), os.Remove(dir))
	}
	return dir, nil
}
