// SPDX-License-Identifier: Apache-2.0

package xattrio

import "github.com/fastlabel/fastlabel/internal/sys"

// SyscallKind is a system call that is made of an entry or a directory.
type SyscallKind uint32

// Each has the name of its call, but for the two that make several.
const (
	Openat SyscallKind = iota
	Row                // reading or writing the names of a row
	Visit              // closing a directory; opening, labelling or reading the next
	Openat2
	Getdents64
	Statx
	Close
	Getxattr
	Fgetxattr
	Lgetxattr
	Getxattrat
	Setxattr
	Fsetxattr
	Lsetxattr
	Setxattrat
	Ioctl     // where a directory lies
	Fadvise64 // on the disk
)

func (k SyscallKind) String() string {
	return [...]string{
		"openat", "setxattrat", "openat", "openat2", "getdents64", "statx", "close",
		"getxattr", "fgetxattr", "lgetxattr", "getxattrat", "setxattr", "fsetxattr", "lsetxattr", "setxattrat", "ioctl", "fadvise64",
	}[k]
}

// Reads is the call by which a label is read.
func Reads(way sys.Way) SyscallKind {
	return [...]SyscallKind{sys.ByDescriptor: Getxattr, sys.ByThread: Lgetxattr, sys.ByName: Getxattrat, sys.Opened: Fgetxattr}[way]
}

// Writes is the call by which it is written.
func Writes(way sys.Way) SyscallKind { return Reads(way) + Setxattr - Getxattr }

// Visits is the call that a visit makes at a step.
func Visits(s sys.Step) SyscallKind {
	return [...]SyscallKind{Close, Openat, Fgetxattr, Fsetxattr, Getdents64, Getdents64}[s]
}
