// SPDX-License-Identifier: Apache-2.0

// Package sys is the kernel's side of the house: one system call a function,
// and the parser of what getdents64 returns. It is the library's only importer
// of golang.org/x/sys.
//
// EINTR is retried; every other errno is returned bare (0 is success). Names are pointers to
// NUL-terminated bytes that the caller keeps, mostly in the buffer that getdents64 filled: nothing is
// copied or allocated. Which call to prefer, and what an errno means, is decided above.
package sys

// Kind is what an entry is, in the numbers of a directory record (DT_*).
type Kind uint8
