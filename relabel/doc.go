// SPDX-License-Identifier: Apache-2.0

// Package relabel gives a directory tree its SELinux security context: in
// parallel, anchored to descriptors, and so that the label on the root can be
// trusted.
//
// A runtime that calls go-selinux's label.Relabel calls [Relabel] or
// [RelabelContext] in its place; one with requests that have deadlines has a
// [Group]. [Tree] has options and a report, [Check] writes nothing, and [Inspect]
// asks the root alone.
//
// The root's label is a commit record: it is written last, in an order that a power failure
// keeps, and only if nothing failed. Until then the root has a seal, another label that
// vouches for nothing. Nothing outside the tree is labelled, whatever is renamed,
// linked or mounted in it during the run. What could not be done is an error, a count or
// a note. The contract stands in doc.go, with the test behind each sentence.
package relabel

// # The path
//
// Tree is read in this order:
//
//	internal/mounts     what is never relabelled; what /proc tells; the root, opened, and which volume it is;
//	                    a mount confined, and what in it is left alone
//	internal/policy     what the loaded policy makes of the label; why it refused one
//	tree.go             Tree and Check, as a caller has them
//	open_linux.go       the root, opened and locked, for this path and those
//	                    beside it; what this kernel can do
//	tree_linux.go       the path itself: open, lock, probe, walk, commit
//	internal/commit     lock, seal, commit: a root that vouches for what is true
//	inspect_linux.go    what a root says of itself
//	mount_linux.go      each mount of the tree; what overlayfs copies for a label
//	submount_linux.go   what is mounted beneath the root
//	job_linux.go        what is asked of a walk
//	internal/walk       the workers: directories, rows, one entry, counts; internal/dirs
//	                    keeps directories open, internal/rows has what a worker goes through,
//	                    internal/order puts it in order, internal/ahead asks the disk for
//	                    what is near
//	root_linux.go       what the commit has to know of the walk; the second reading
//	budget.go           what all runs of the process share, and how many calls of Inspect
//	                    may hang: internal/budget
//	trace.go            what a caller is told, or has logged
//	internal/account    what is counted, and told one at a time
//	report_linux.go     counts and notes, for the Report
//	state_linux.go      how far it is, for a caller who asks
//	internal/caller     the caller's code, which may panic, end or block; a run that hangs
//	                    is left behind, and a mount that hangs is not waited for
//
// Labels by rules, beside it:
//
//	rules.go            what a caller asks for, of Apply
//	contexts            the file contexts of a policy, for a caller to load
//	internal/rules      what is written over the label that is there
//	apply_linux.go      the path of Apply: no seal, no commit; rules handed to the walk
//
// Around Tree, for runtimes:
//
//	group.go            one relabel of a volume in a process; what it is asked, and tells
//	internal/flight     joined, left, queued, kept, stopped: which states it may be in
//	group_linux.go      a run of it
//	pending.go          how far it is
//	dropin.go           Relabel and Chcon in place of go-selinux's
//	internal/dropin     errors in its words
//
// internal/xattrio reads and writes the label of an entry without opening it, in one
// of three ways, and judges errnos; internal/watch tells which calls hang; internal/sys
// makes the system calls, one a function. Outside, secctx parses labels and chooses the
// seal, mountinfo parses what the kernel says of mounts, fcontexts knows which label the
// policy has for a path.
//
// # The rooms
//
// Each package, and all that it imports of the others, which stand beneath it.
// (TestDocImports)
//
//	relabel   ▶ account budget caller commit dropin flight mountinfo mounts order policy rules secctx steal sys walk watch xattrio
//	contexts  ▶ fcontexts secctx sys walk
//	rules     ▶ secctx sys walk
//	dropin    ▶ account policy
//	account   ▶ caller steal walk
//	caller    ▶ budget walk watch
//	flight    ▶ budget watch
//	walk      ▶ ahead budget commit dirs mounts order policy rows steal sys tune watch xattrio
//	ahead     ▶ mounts sys xattrio
//	dirs      ▶ mounts sys xattrio
//	commit    ▶ secctx sys xattrio
//	policy    ▶ mountinfo secctx sys xattrio
//	order     ▶ budget sys
//	rows      ▶ sys
//	xattrio   ▶ secctx sys
//	mounts    ▶ mountinfo sys watch
//	mountinfo ▶
//	secctx    ▶
//	fcontexts ▶
//	steal     ▶
//	sys       ▶
//	tune      ▶
//	budget    ▶ watch
//	watch     ▶
//
// # The contract
//
// Behind each sentence stands the test that holds it.
//
//  1. The root's label is a commit record. It is written last, after every
//     other write has returned, only if nothing failed, and in an order that kill -9 and
//     power loss keep. ext4 with a journal and XFS keep it by themselves; tmpfs is gone with
//     the power. On btrfs its transaction is ended first. On all others, and where it cannot
//     be told, syncfs comes first, and fsync after; so it does for other filesystems than
//     the root's that are mounted beneath it, but tmpfs and mounts on what is no regular
//     file or directory. overlayfs is as its upper layer. With Sync all is on disk before
//     the root's label, and that when the call returns.
//     A label that was mended beneath a root that was right all the while may be as it was
//     after a power loss. (TestOrderOfCalls, TestOrderOf, TestOrderOfLayers, TestSyncsForOthers,
//     TestFailureSeals; and TestPowerLoss, TestShutdown of test/torture)
//  2. Before the first change beneath a root that has another label, the
//     root is sealed: it gets a label that equals neither the old one nor the
//     new, so that no label on it vouches for a half-changed tree; nor any that
//     runs which were interrupted had found or would have given, where a claim
//     can be left beside the seal; that its owner left no room for one is noted.
//     (TestClaimNoRoom, TestSealHolds, TestSealEach,
//     TestSealWanted, TestBackToTheOldLabel, TestSeals) A root that was right is sealed when
//     something beneath it failed. (TestFailureSeals) An interrupted run leaves
//     the seal; the next run completes it. While there is a claim no label on the root
//     vouches to this library, and it stays until the reading after the root's label has
//     ended. To one who reads the label alone, as container runtimes do, and without a seal,
//     trusted attributes or CAP_SYS_ADMIN, the root vouches from its label on: if the run is
//     killed before that reading has ended, then also for what was created in the root, or
//     moved there, since it was read before the label. (TestKilledClosing)
//  3. The counts add up: Seen = Written + Right + Vanished + Skipped + Failed.
//     A mount that is left alone counts once, and a root whose label is
//     withheld counts as skipped. One worker and many give the same counts
//     (Written and Right each for itself under Exact, and but for entries
//     that are reached by several names). A second run writes nothing.
//     (TestEveryWay, TestSameCounts, TestSecondRun, TestSmallTurnsLarge)
//  4. A right label is not written again where the root is right. Where it is
//     not, after a row of 32 wrong labels the walk writes unread but for one
//     entry in 64, until it finds a right one. Exact always reads first.
//     (TestSecondRun, TestGuess, TestCallsPerEntry) Of NFS no label is taken to be right
//     before the server has said so: another machine may have written it. (TestStale;
//     and TestNFS of test/system/selinuxvm/inside)
//  5. Nothing outside the tree is labelled, whatever its owner renames, links
//     or mounts during the run. Links are labelled, not followed; devices, FIFOs
//     and sockets are not opened; of the device that a cold ext4 is on, what is near
//     its directories is read ahead, and looked at by the kernel alone. (TestReadAhead)
//     Two exceptions: a file with hard links has one label, by whatever name it is
//     reached; and a directory moved out during the run is labelled to its end. (TestEscape,
//     TestNothingElseOpened, TestMovedAway) The system's own places are refused as a root, and
//     what they lead to where they are links; what lies in them is not. A process looks at
//     them again when something was mounted, or a second has passed. (TestRefusedRoots,
//     TestRefusedLinks, TestRefusedAnew, TestPlacesKept, TestPlacesAnew) So is a caller whose
//     thread has a root directory or a mount namespace of its own, as the path may lead
//     the threads that do the work elsewhere. (TestDropinContract, TestGroupByThread)
//  6. One failure does not stop the others; each is reported with its path and
//     errno. What vanishes during the run is counted and is no failure, but in an
//     encrypted directory, where names change with the key. Two things end a run
//     early: a label that the kernel refuses, and 128 input or output errors in a
//     row. (TestVanish, TestEncrypted, TestFailureSeals)
//     A mount that cannot have labels, or is read-only, is skipped and named. So
//     are a read-only subvolume of btrfs; a place that is never relabelled, where
//     it is met in the tree, with every mount in it; and a filesystem of the
//     kernel's own, with what is mounted in it. An automount is triggered only if
//     it is the root; what it has mounted already is labelled. A mount of which the run
//     knows is found by its id if a directory above it is renamed during the run, and is a
//     failure if it is no longer in the tree, or was unmounted from a directory that is. A
//     small tree is labelled without the table of mounts, until a mount is met in it.
//     (TestLeftAlone, TestReadOnlySubvolume, TestReadOnlySubvolumeOfRoot,
//     TestBeneathRefused, TestRefusedInside, TestKernelFilesystems,
//     TestAutomountInside, TestAutomountRoot, TestMountMoves,
//     TestMountAncestorMoves) A root may lie deeper than the kernel tells a path; what is
//     mounted beneath it is found by trying the paths of the mounts that do.
//     (TestBeyondPathMax, TestBeyondPathMaxRefused, TestBeyondPathMaxMoves)
//  7. What is created in a directory after it was labelled inherits from it:
//     directories are labelled before they are read. What SELinux takes from
//     the directory is the type; user and level are those of the process that
//     creates, unless the policy has a transition for them. So what a container
//     creates has the label of its volume, and what a process of another level
//     creates during the run the type alone: a second run gives it the rest. The root
//     is labelled last, so its entries are read again after that, until a pass
//     finds nothing to write, unless nothing was created in it by its times, which count
//     from the tick of the filesystem's clock in which they were set, and by its names if
//     they are up to about a thousand; and once before, when all is written, if its ctime says
//     that something was. (TestCreatedMeanwhile, TestKilledClosing, TestCreatedAndBackdated,
//     TestCreatedAtCommit, TestReadOnce, TestSettled, TestCancelAtCommit,
//     TestHungSecondReading; and
//     TestCreated of test/system/selinuxvm/inside)
//     What is moved during the run, within the tree or into it, is not promised
//     to be labelled; a second run finds it. (TestSwapKinds)
//  8. Cancelling returns soon, with every goroutine ended unless a call hangs
//     in the kernel; the error is then a *HungError and says where. When the last
//     such call has returned, nothing of the run is left: no goroutine, no
//     descriptor, no lock; until then the lock is held, under which it may yet
//     write. A run after it writes only what is left. (TestCancelSoon,
//     TestLeaks, TestThaw, TestLockIsNotCollected) A callback has to return. One that
//     panics ends the run, sealed, and the panic goes on in the caller. (TestCallbackPanics,
//     TestCallbackPanicsLast, TestGroupPanics, TestGroupTracePanics) None runs on a thread
//     that is in the volume. (TestCallbackElsewhere)
//  9. Memory and open files do not grow with the tree. (TestLine,
//     TestFewDescriptors, TestAllocations, and TestBounds of test/torture) One large directory of ext4 is sorted within
//     37 MiB, or 236 where there is so much to spare. (TestGathered,
//     TestStretches, TestRoom, TestMemoryAtHand) All runs of a process share one
//     budget of workers and one of descriptors, for which they wait within
//     their contexts; volumes that hang, or whose lock is waited for, keep no
//     other waiting while there are descriptors. (TestManyVolumes,
//     TestFrozenVolumes, TestFrozenFile, TestWaitingVolumes, TestBudget,
//     TestBudgetHung, TestBudgetTurn) Inspect waits
//     for no share; where some of them hang, further ones are an error at once.
//     (TestProbeDead, TestProbeManyPaths)
//  10. One relabel of a volume at a time, across processes, by a lock in the
//     runtime directory that the owner of the volume cannot reach. Callers of one
//     process have it in the order in which they came. (TestOneAtATime,
//     TestKilledHolder, TestOwnersLock, TestLockOfOthers, TestQueue) Of two to different
//     labels that share no lock one says done at most: a root that does not have
//     what the run left on it is not committed. (TestTwoRuns, TestOvertaken,
//     TestOvertakenSoon, TestOvertakenWaiting, TestHeedClock, TestHealerOvertaken,
//     TestForgedClaim) While a run does not know whether its root is still its own,
//     since looking at it takes long, it writes nothing. (TestSlowLook)
//  11. What could not be done is an error, a count or a note: never silence.
//     (TestOrdinaryUser, TestLeftAlone) That /proc is missing is not told as if
//     the root were. (TestWithoutProc)
//  12. A Group walks a volume once for all who ask at the time. A caller who
//     leaves is told how far it is; one who comes back joins it, or is told that it
//     failed. (TestGroupKubelet, TestGroupThousand, TestGroupOtherLabel, TestGroupLinger,
//     TestGroupFresh, TestGroupFailure, TestGroupDeadStorage, TestGroupLookers,
//     TestGroupBusy, TestGroupStorm, TestGroupOnDisk) A volume is what its root is by mount, filesystem and
//     inode, also when its turn comes. (TestGroupRemade, TestGroupMoved,
//     TestGroupChdir) Until a run has left its volume, that cannot be unmounted, so that
//     no one takes it for free while the run may write. (TestUnmountBusy) After Stop and
//     Shutdown nothing on it is open.
//     (TestGroupStop, TestGroupStopHeld, TestGroupStopFrozen, TestGroupShutdown,
//     TestGroupStopStorm)
//  13. Relabel and Chcon behave as go-selinux's do, but for the differences that
//     a table lists with their reasons. (TestDropinContract, TestDropinErrors,
//     TestChconManyFailures, TestDropinWaits)
//  14. By rules, each entry has the label of the rule for its path and kind
//     afterwards, or of the part that is asked for; a file of several names that of the
//     rule for one of them. (TestApplyLinks) What a rule leaves alone is
//     skipped, and what is in it is not. Every label is read first, and nothing outside
//     the tree is labelled. No label vouches for a tree in which rules have written, also if
//     a run had committed it before. (TestApply, TestApplyTrust, TestApplyOvertaken,
//     TestApplyOracle, TestWant, TestOver, TestEscape; and TestRulesKill, TestRulesErrnos of
//     test/torture)
