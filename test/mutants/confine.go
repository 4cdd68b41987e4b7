// SPDX-License-Identifier: Apache-2.0

package mutants

// confinement breaks what keeps a run inside its tree.
func confinement() []Mutant {
	const (
		confine = "internal/mounts/confine_linux.go"
		calls   = "internal/sys/sys_linux.go"
		walk    = "internal/walk/worker_linux.go"
	)
	return []Mutant{
		mutant("devices-labelled", "TestDropinContract in relabel", "what lies on devtmpfs is refused",
			"internal/mounts/refuse_linux.go", "m.FSType == \"devtmpfs\"", "m.FSType == \"never\""),
		mutant("one-filesystem-of-mounts", "TestOneFilesystemSubvolumes in relabel", "OneFilesystem is bounded by the device number",
			"internal/mounts/bounds_linux.go", "m.ByDevice = m.oneFilesystem &&", "m.ByDevice = false &&"),
		mutant("small-right-once", "TestRightLooksAgain in relabel", "a small tree is right only if its root has the label after all was read",
			"relabel/root_linux.go", "trust == commit.Untrusted || err != nil { // each", "trust > commit.Trusted || err != nil { // each"),
		mutant("small-misses-mount", "TestSmallTurnsLarge in relabel", "a small tree that meets a mount is left to workers, who know the mounts",
			walk, "\tw.small.large = true\n\tif t.Kind", "\tif t.Kind"),
		mutant("small-rest-lost", "TestSmallTurnsLarge in relabel", "what was read of a small tree and not labelled is left to workers",
			walk, "w.pushListed(d, buf[off:])\n", "_ = off\n"),
		mutant("small-right-by-pin", "TestDropinCosts in relabel", "an entry of a small tree that is right costs one call",
			"relabel/root_linux.go", "j.ByName = true", "j.ByName = false"),
		mutant("nofollow-dropped", "TestLinkInPlace in relabel", "links are not followed",
			calls, " | unix.MOUNT_ATTR_NOSYMFOLLOW", "",
			calls, "OpenPath = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC", "OpenPath = unix.O_PATH | unix.O_CLOEXEC",
			calls, "| unix.O_DIRECTORY | unix.O_NOFOLLOW |", "| unix.O_DIRECTORY |",
			calls, "unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS", "0",
			"internal/sys/xattr_linux.go", "unix.SYS_SETXATTRAT, uintptr(dir), name, unix.AT_SYMLINK_NOFOLLOW", "unix.SYS_SETXATTRAT, uintptr(dir), name, 0",
			walk, "\tif t.Kind == sys.KindUnknown {", "\tif t.Kind == sys.KindLink {\n\t\treturn\n\t}\n\tif t.Kind == sys.KindUnknown {"),
		mutant("xdev-dropped", "TestRace in test/system/torture", "no mount is crossed as part of its parent",
			confine, "sys.OpenTree(at)", "sys.Openat(at, sys.Cname(\".\"), sys.OpenPath, 0)",
			confine, "if e = sys.MountSeclude(tree); e == 0 {", "if e == 0 {",
			confine, "e == 0 && id != m.Stat.Mount", "e == 0 && id == 0",
			calls, "unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV |", "unix.RESOLVE_BENEATH |"),
		mutant("no-xdev-dropped", "TestLeftAlone in relabel", "openat2 crosses no mount",
			calls, "unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV |", "unix.RESOLVE_BENEATH |"),
		mutant("mountid-uncompared", "TestLeftAlone in relabel", "without openat2 the mount ids are compared",
			confine, "e == 0 && id != m.Stat.Mount", "e == 0 && id == 0"),
		mutant("dotdot", "TestRace in test/system/torture", "the walk goes back up by its own descriptors, wherever a directory is moved",
			walk, "\t\tl.tally.Found++\n", "\t\tif w.descend(d, fd, e, t); true {\n\t\t\treturn\n\t\t}\n\t\tl.tally.Found++\n",
			walk, "// readAhead asks", `func (w *worker) descend(d *directory, fd int, e sys.Dirent, t xattrio.Target) {
	l := &w.labels
	down, _, errno := w.mount.OpenDir(fd, t.Name)
	if errno != 0 {
		return
	}
	child := w.cache.opened(d, string(e.Name[:len(e.Name)+1]), down, d.want.Label, d.want)
	l.countDir(child, l.label(xattrio.Target{FD: down}, child))
	other := w.walk.worker(w.queue)
	other.labels.io.Way, other.buf = l.io.Way, make([]byte, bufferSize)
	other.pos.row.names.Stop = w.pos.row.names.Stop
	other.scan(child, down)
	l.tally.Add(other.labels.tally)
	if up, errno := sys.Openat(down, sys.Cname(".."), sys.OpenDir, 0); errno == 0 {
		_ = syscall.Dup3(up, fd, 0)
		sys.Close(up)
	}
	w.cache.release(child)
}

// readAhead asks`),
		mutant("reentry-unchecked", "TestReentry in internal/walk", "a directory found again is the same one",
			"internal/walk/dirs_linux.go", "was != (mounts.ID{}) && mounts.IDOf(st) != was", "was != (mounts.ID{}) && mounts.IDOf(st) == (mounts.ID{})"),
		mutant("device-ignored", "TestThreadsLeaveNoTrace in relabel", "what is refused or skipped is known by device and inode",
			"internal/mounts/mount_linux.go", "ID{st.Dev, st.Ino}", "ID{0, st.Ino}"),
		mutant("hidden-labelled", "TestEveryWay/nested-mounts in relabel", "what lies under a mount is not in the tree",
			"internal/mounts/bounds_linux.go", "on.Parent != m.Stat.Mount", "on.Parent != 0"),
		mutant("mount-in-refused", "TestBeneathRefused in relabel", "what is mounted in a refused place is skipped",
			"internal/mounts/submount_linux.go", "b.Refused[id]; is && why == \"\" {", "b.Refused[id]; is && i == last {"),
		mutant("refused-inside", "TestRefusedInside in relabel", "a refused place that lies in the tree as a plain directory is skipped",
			"internal/mounts/bounds_linux.go", "\t\tif m.mayHold(id, place) {", "\t\tif false {"),
		mutant("mounts-unasked", "TestEveryWay/nested-mounts in relabel", "the table of mounts is read where something is mounted",
			"internal/mounts/proc_linux.go", "return !has", "return has || !has"),
		mutant("table-kept-too-long", "TestTableKept", "a table that was kept does not do where something is mounted in the root's mount",
			"internal/mounts/proc_linux.go", "return m.Parent == mine.ID", "return m.Parent == 0"),
		mutant("mounts-unnoticed", "TestPlacesKept", "the refused places are looked at again when something was mounted",
			"internal/mounts/refuse_linux.go", "event <= r.event && ", ""),
		mutant("kernel-labelled", "TestKernelFilesystems in relabel", "the kernel's own filesystems are skipped, with what is mounted in them",
			"internal/mounts/submount_linux.go", "case !at.Kernels() || at != listed && at.FSType == \"autofs\":", "case !at.Kernels() || at != listed:"),
		mutant("proc-unverified", "TestProcKept", "what /proc says comes from the kernel",
			"internal/mounts/proc_linux.go", "kind != sys.Proc {", "kind == 0 {"),
		mutant("slash-let-through", "TestParseMalformed", "a name from the disk is one name",
			"internal/sys/dirent_linux.go", "end < 1 || bytes.IndexByte(name[:end], '/') >= 0", "end < 1"),
		mutant("hardlinks-unpinned", "TestHardLinks in relabel", "what was counted is what is labelled: it is pinned first",
			"internal/walk/walk_linux.go", "m.Confined == mounts.Clone && j.HardLinks == LinksLabel", "m.Confined == mounts.Clone"),
	}
}
