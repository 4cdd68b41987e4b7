// SPDX-License-Identifier: Apache-2.0

// Package sys is the kernel's side of the house: one system call a function,
// and the parser of what getdents64 returns. It is the library's only importer
// of golang.org/x/sys.
//
// Rules that each function keeps:
//   - EINTR is retried; every other errno is returned bare (0 is success), so
//     that callers add the operation and the path where something failed.
//   - Names are passed as pointers to NUL-terminated bytes that the caller
//     keeps, mostly inside the buffer that getdents64 filled. Nothing is
//     copied and nothing allocated.
//   - No policy: which call to prefer, and what an errno means, is decided
//     above.
package sys

// Kind is what an entry is, in the numbers of a directory record (DT_*).
type Kind uint8
