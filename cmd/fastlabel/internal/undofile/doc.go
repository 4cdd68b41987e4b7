// SPDX-License-Identifier: Apache-2.0

// Package undofile is the file in which fastlabel --record keeps former labels.
//
// The file begins with a line of text, "fastlabel record 1\n". Frames follow:
//
//	tag       16 bytes, the same in all frames of a file, drawn at random
//	kind      1 byte: 1 head, 2 pages, 3 end
//	          3 bytes, zero
//	number    4 bytes: of the frame in the file, from 0
//	length    4 bytes: of the payload
//	size      4 bytes: of the payload, decompressed
//	checksum  4 bytes: CRC-32C of all these and the payload
//	payload   compressed with zstd
//
// Numbers are little-endian. The first frame is the head and says of what the
// record is; the last is the end, with the sum of the entries. Both are JSON. A
// frame of pages is complete in itself: labels, each once, then for each
// directory its path (as many bytes as it shares with the one before, and the
// rest), the names, inode numbers as differences, and for each the number of
// its label. See encode.go.
//
// A frame is written in one go, and is on disk before the next is begun. So of a
// run that was killed, or lost its power, only the last frame can be damaged.
// Room is taken in advance, as zeros, lest each frame costs a commit of the
// journal of the filesystem: nothing but zeros behind the last frame is
// nothing. A damaged frame with another behind it, by their tag, is not the
// work of a crash.
package undofile
