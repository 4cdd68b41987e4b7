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

// countInodes are filesystems, by what statfs(2) calls them, that count the inodes
// in use, of which no entry but a second name of a file goes without one.
var countInodes = []uint32{
	0xef53,     // ext2, ext3, ext4
	0xf2f52010, // f2fs
	0x3153464a, // jfs
	0x01021994, // tmpfs
	0x58465342, // xfs
}

// inodesOf is how many inodes are in use on the filesystem that path is on, as df -i
// shows them, if all that is walked lies on it: there are no more entries than that,
// but for further names of a file. Else it is 0.
func inodesOf(path string, s *settings) int64 {
	at := locate(workingDirectory(), path, map[string]string{})
	text, err := os.ReadFile("/proc/self/mountinfo")
	if at.path == "" || err != nil || !s.xdev && holdsMounts(string(text), at.path) {
		return 0
	}
	var st syscall.Statfs_t
	if syscall.Statfs(at.path, &st) != nil || !slices.Contains(countInodes, uint32(st.Type)) || st.Files < st.Ffree {
		return 0
	}
	return int64(st.Files - st.Ffree)
}

// holdsMounts tells by the table whether anything is mounted beneath path.
func holdsMounts(table, path string) bool {
	beneath := strings.TrimSuffix(path, "/") + "/"
	for _, m := range mounts(table) {
		if strings.HasPrefix(m.Point, beneath) && m.Point != path {
			return true
		}
	}
	return false
}
