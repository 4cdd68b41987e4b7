// SPDX-License-Identifier: Apache-2.0

package mounts

// Volume tells one volume from another. What the kernel does not tell is 0.
type Volume struct {
	dev, ino, fsid, mount uint64
	born                  int64 // ns
}
