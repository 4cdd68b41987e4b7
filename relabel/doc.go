// SPDX-License-Identifier: Apache-2.0

// Package relabel gives a directory tree its SELinux label: in parallel, and so that the
// label on the root, which is written last, can be trusted. docs/contract.md is its contract.
//
// A runtime that calls go-selinux's label.Relabel calls [Relabel] or [RelabelContext] in
// its place; one with requests that have deadlines has a [Group]. [Tree] has options and a
// report, [Verify] writes nothing, [Inspect] asks the root alone, and [Apply] labels by rules.
package relabel

// # The path
//
// Tree is read in this order:
//
//	tree.go             Tree, Verify and Inspect, as a caller has them; options.go, errors.go;
//	                    other.go where there is no Linux
//	tree_linux.go       the path itself: open, probe, lock, begin, walk, end
//	open_linux.go       the root, opened; what this kernel can do
//	root_linux.go       the root's label, as Inspect and the commit see it; the second reading
//	mount_linux.go      a mount, from its opening to its walk
//	submount_linux.go   what is mounted beneath the root; one mount, labelled on its own
//	report_linux.go     what a run counts and reports, and which failures it keeps
//	report.go           how far a run is, and its end: Progress, State, Report
//	trace.go            what is reported to the caller, or logged
//	budget_linux.go     what all runs of the process share: internal/budget
//
// and, in the module's own internal:
//
//	internal/mounts     /proc; the root; what is never relabelled or skipped; a mount, confined
//	internal/policy     what the loaded policy says of the label; why it refused one
//	internal/commit     lock, seal, commit: what makes a root trusted
//	internal/walk       the workers: directories, rows, one entry, counts; internal/order
//	                    puts entries in order, internal/steal has workers share their work
//	internal/xattrio    the label of an entry that is not opened, read and written in one of
//	                    three ways; what an errno means to the walk
//	internal/sys        the system calls
//	internal/run        a run beside its caller, whose code it calls; the calls that hang
//
// Labels by rules:
//
//	rules.go            Apply, as a caller has it; what is written over the label that is there
//	contexts            the file contexts of a policy, for a caller to load
//	apply_linux.go      the path of Apply: no seal, no commit; how it has a root distrusted
//
// For runtimes:
//
//	group.go            one relabel of a volume at a time in a process; how far it is
//	internal/flight     joined, left, queued, kept, stopped
//	dropin.go           Relabel and Chcon in place of go-selinux's
//	dropin_linux.go     a call of one; errors in go-selinux's words
//
// For the command too: internal/secctx parses labels and chooses the seal, internal/mountinfo parses
// the table of mounts, internal/fcontexts finds the label that a policy has for a path.
//
// # The rooms
//
// Each package, and all that it imports of the others (TestDocImports).
//
//	relabel   ▶ budget commit flight mountinfo mounts order policy run secctx steal sys walk xattrio
//	contexts  ▶ fcontexts secctx sys walk
//	flight    ▶
//	walk      ▶ budget commit mounts order policy run steal sys xattrio
//	commit    ▶ secctx sys xattrio
//	policy    ▶ secctx sys xattrio
//	order     ▶ budget sys
//	xattrio   ▶ secctx sys
//	mounts    ▶ mountinfo run sys
//	run       ▶ budget
//	mountinfo ▶
//	secctx    ▶
//	fcontexts ▶
//	steal     ▶
//	sys       ▶
//	budget    ▶
