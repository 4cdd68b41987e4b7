// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"unsafe"
)

// notifyAsked sends to c when somebody asks how far the work is: SIGUSR1.
func notifyAsked(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR1) }

// parentsTerminal opens what a part's parent has as standard error.
func parentsTerminal() (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("/proc/%d/fd/2", os.Getppid()), os.O_RDONLY|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
}

// inFront tells whether this job is the one that has the terminal. Of a
// terminal that controls nobody here it is.
func inFront(f *os.File) bool {
	var group int32
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return e != 0 || int(group) == syscall.Getpgrp()
}

// countsEntries are filesystems whose statfs(2) counts the inodes in use, and
// where each entry of a tree has one: tmpfs counts attributes among them.
var countsEntries = []string{"ext2", "ext3", "ext4", "f2fs", "jfs", "xfs"}

// entriesOf is about how many entries there are in path and beneath it: the
// inodes in use if path is the root of a whole filesystem that counts them. Else
// it is 0, not known.
func entriesOf(path string, s *settings) int64 {
	at := locate(workingDirectory(), path, map[string]string{})
	text, err := os.ReadFile("/proc/self/mountinfo")
	if at.path == "" || err != nil || len(s.exclude) > 0 || !isWhole(string(text), at.path, s.xdev) {
		return 0
	}
	var st syscall.Statfs_t
	if syscall.Statfs(at.path, &st) != nil || st.Files < st.Ffree {
		return 0
	}
	return int64(st.Files - st.Ffree)
}

// isWhole tells by the mount table whether path is where a filesystem that
// counts its entries is mounted from its root on, and nothing is mounted
// beneath that is walked as well.
func isWhole(mountinfo, path string, xdev bool) bool {
	whole, beneath := false, strings.TrimSuffix(path, "/")+"/"
	for m := range mountLines(mountinfo) {
		switch {
		case m.point == path: // the last of several is on top
			whole = m.root == "/" && slices.Contains(countsEntries, m.fstype)
		case strings.HasPrefix(m.point, beneath) && !xdev:
			return false
		}
	}
	return whole
}
