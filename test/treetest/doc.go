// SPDX-License-Identifier: Apache-2.0

// Package treetest is the house's test bench; only tests import it.
//
//	Parse, Load, Build    trees written as text (testdata/trees/*.txt)
//	Each, Fresh, Need     filesystems to grow them on, and loud skips
//	Label, Set            a naive serial labeller: the oracle
//	Read, List, Count     what is there, read back by other means
//	Snapshot, Diff        what has changed, in ten lines
//	Trace                 the system calls of a program, in order
//	Deny                  a program under a kernel that lacks some calls
//	Supervise             a program whose Nth call fails, or is its last
//
// A package whose tests use it hands its TestMain over:
//
//	func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }
//
// Main moves the test process into a mount namespace of its own, so that
// whatever a test mounts is gone with the process, however it ends: a panic,
// a timeout, kill -9.
//
// # Trees
//
// One entry a line: kind, path, what the kind needs, options. Fields are
// parted by blanks; a field with odd bytes is Go-quoted; # begins a comment.
// Parents that no line makes are made. Entries are made in the order written.
//
//	dir PATH                      "dir ." stands for the root
//	file PATH
//	link PATH TARGET              a symbolic link; TARGET is taken as it is
//	hardlink PATH TO              TO is a path of the tree
//	fifo PATH
//	socket PATH
//	char PATH MAJOR:MINOR
//	block PATH MAJOR:MINOR
//	mount PATH tmpfs|ramfs [ro]   turned read-only after all is made
//	mount PATH bind OTHER [ro]    OTHER is a directory or file of the tree
//	deep PATH xN LENGTH           N directories one below the other, with
//	                              names of LENGTH bytes, a file "leaf" lowest
//	names PATH every-byte         a directory of awkward names
//	default                       the label of the lines that follow
//
// Options: label=CONTEXT (label=- for none; without one, what default said),
// mode=OCTAL, and xN on a dir, file or fifo, whose path then holds one %d or
// %0Nd for the numbers from 0 on. A hard link and a bind mount have the label
// of what they show, and ramfs has none; default leaves them alone.
package treetest
