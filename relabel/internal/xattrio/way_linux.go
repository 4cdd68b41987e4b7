// SPDX-License-Identifier: Apache-2.0

package xattrio

import (
	"runtime"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// Way is how a walk reaches the labels of names.
type Way = sys.Way

// The ways, from the slowest to the fastest.
const (
	ByDescriptor = sys.ByDescriptor
	ByThread     = sys.ByThread
	ByName       = sys.ByName
)

// Fastest asks the kernel for the fastest way that it has.
func Fastest() Way {
	switch {
	case sys.HasXattrat():
		return ByName
	case sys.HasUnshare():
		return ByThread
	}
	return ByDescriptor
}

// Ready makes the calling goroutine fit for its way.
func (x *IO) Ready() (string, sys.Errno) {
	if x.Way != ByThread {
		return "", 0
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	if sys.MainThread() {
		// It would not end, and its working directory is what others see
		// as the process's. The longer way needs no thread.
		runtime.UnlockOSThread()
		x.Way = ByDescriptor
		return "", 0
	}
	return "unshare", sys.UnshareFS()
}
