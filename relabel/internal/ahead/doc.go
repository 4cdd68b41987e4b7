// SPDX-License-Identifier: Apache-2.0

// Package ahead asks the disk for what is near a directory.
//
// A cold ext4 reads a directory block by block, and most directories are one block: of
// all requests to the disk that is nine in ten, and many disks allow some thousand a
// second. The kernel has these blocks in the memory of the block device. So while the
// disk is read and the processors have nothing to do, a directory is looked up on the
// device, and what lies around it is asked for with it: directories lie near each other.
// It is a hint. Nothing that is read this way is looked at here; where the device cannot
// be opened, as in a container, the walk goes on without.
//
// Bytes are not free either. While what was asked for holds few of the directories met,
// no more is.
package ahead
