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
		{
			Name: "devices-labelled", By: "TestDropinContract in relabel",
			Breaks: "what lies on devtmpfs is refused",
			Edits:  edits("internal/mounts/refuse_linux.go", "m.FSType == \"devtmpfs\"", "m.FSType == \"never\""),
		},
		{
			Name: "one-filesystem-of-mounts", By: "TestOneFilesystemSubvolumes in relabel",
			Breaks: "OneFilesystem is bounded by the device number",
			Edits:  edits("internal/mounts/bounds_linux.go", "m.ByDevice = m.oneFilesystem &&", "m.ByDevice = false &&"),
		},
		{
			Name: "small-right-once", By: "TestRightLooksAgain in relabel",
			Breaks: "a small tree is right only if its root has the label after all was read",
			Edits:  edits("relabel/root_linux.go", "trust == commit.Untrusted || err != nil { // each", "trust > commit.Trusted || err != nil { // each"),
		},
		{
			Name: "small-misses-mount", By: "TestSmallTurnsLarge in relabel",
			Breaks: "a small tree that meets a mount is left to workers, who know the mounts",
			Edits:  edits(walk, "\tw.small.large = true\n\tif t.Kind", "\tif t.Kind"),
		},
		{
			Name: "small-rest-lost", By: "TestSmallTurnsLarge in relabel",
			Breaks: "what was read of a small tree and not labelled is left to workers",
			Edits:  edits(walk, "w.pushListed(d, buf[off:])\n", "_ = off\n"),
		},
		{
			Name: "small-right-by-pin", By: "TestDropinCosts in relabel",
			Breaks: "an entry of a small tree that is right costs one call",
			Edits:  edits("relabel/root_linux.go", "j.ByName = true", "j.ByName = false"),
		},
		{
			Name: "nofollow-dropped", By: "TestLinkInPlace in relabel",
			Breaks: "links are not followed",
			Edits: edits(
				calls, " | unix.MOUNT_ATTR_NOSYMFOLLOW", "",
				calls, "OpenPath = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC", "OpenPath = unix.O_PATH | unix.O_CLOEXEC",
				calls, "| unix.O_DIRECTORY | unix.O_NOFOLLOW |", "| unix.O_DIRECTORY |",
				calls, "unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS", "0",
				"internal/sys/xattr_linux.go", "unix.SYS_SETXATTRAT, uintptr(dir), name, unix.AT_SYMLINK_NOFOLLOW", "unix.SYS_SETXATTRAT, uintptr(dir), name, 0",
				walk, "\tif t.Kind == sys.KindUnknown {", "\tif t.Kind == sys.KindLink {\n\t\treturn\n\t}\n\tif t.Kind == sys.KindUnknown {",
			),
		},
		{
			Name: "xdev-dropped", By: "TestRace in test/system/torture",
			Breaks: "no mount is crossed as part of its parent",
			Edits: edits(
				confine, "sys.OpenTree(at)", "sys.Openat(at, sys.Cname(\".\"), sys.OpenPath, 0)",
				confine, "if e = sys.MountSeclude(tree); e == 0 {", "if e == 0 {",
				confine, "e == 0 && id != m.Stat.Mount", "e == 0 && id == 0",
				calls, "unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV |", "unix.RESOLVE_BENEATH |",
			),
		},
		{
			Name: "no-xdev-dropped", By: "TestLeftAlone in relabel",
			Breaks: "openat2 crosses no mount",
			Edits:  edits(calls, "unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV |", "unix.RESOLVE_BENEATH |"),
		},
		{
			Name: "mountid-uncompared", By: "TestLeftAlone in relabel",
			Breaks: "without openat2 the mount ids are compared",
			Edits:  edits(confine, "e == 0 && id != m.Stat.Mount", "e == 0 && id == 0"),
		},
		{
			Name: "dotdot", By: "TestRace in test/system/torture",
			Breaks: "the walk goes back up by its own descriptors, wherever a directory is moved",
			Edits: edits(
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

// readAhead asks`,
			),
		},
		{
			Name: "reentry-unchecked", By: "TestReentry in internal/walk",
			Breaks: "a directory found again is the same one",
			Edits:  edits("internal/walk/dirs_linux.go", "was != (mounts.ID{}) && mounts.IDOf(st) != was", "was != (mounts.ID{}) && mounts.IDOf(st) == (mounts.ID{})"),
		},
		{
			Name: "device-ignored", By: "TestThreadsLeaveNoTrace in relabel",
			Breaks: "what is refused or skipped is known by device and inode",
			Edits:  edits("internal/mounts/mount_linux.go", "ID{st.Dev, st.Ino}", "ID{0, st.Ino}"),
		},
		{
			Name: "hidden-labelled", By: "TestEveryWay/nested-mounts in relabel",
			Breaks: "what lies under a mount is not in the tree",
			Edits:  edits("internal/mounts/bounds_linux.go", "on.Parent != m.Stat.Mount", "on.Parent != 0"),
		},
		{
			Name: "mount-in-refused", By: "TestBeneathRefused in relabel",
			Breaks: "what is mounted in a refused place is skipped",
			Edits:  edits("internal/mounts/submount_linux.go", "b.Refused[id]; is && why == \"\" {", "b.Refused[id]; is && i == last {"),
		},
		{
			Name: "refused-inside", By: "TestRefusedInside in relabel",
			Breaks: "a refused place that lies in the tree as a plain directory is skipped",
			Edits:  edits("internal/mounts/bounds_linux.go", "\t\tif m.mayHold(id, place) {", "\t\tif false {"),
		},
		{
			Name: "mounts-unasked", By: "TestEveryWay/nested-mounts in relabel",
			Breaks: "the table of mounts is read where something is mounted",
			Edits:  edits("internal/mounts/proc_linux.go", "return !has", "return has || !has"),
		},
		{
			Name: "table-kept-too-long", By: "TestTableKept",
			Breaks: "a table that was kept does not do where something is mounted in the root's mount",
			Edits:  edits("internal/mounts/proc_linux.go", "return m.Parent == mine.ID", "return m.Parent == 0"),
		},
		{
			Name: "mounts-unnoticed", By: "TestPlacesKept",
			Breaks: "the refused places are looked at again when something was mounted",
			Edits:  edits("internal/mounts/refuse_linux.go", "event <= r.event && ", ""),
		},
		{
			Name: "kernel-labelled", By: "TestKernelFilesystems in relabel",
			Breaks: "the kernel's own filesystems are skipped, with what is mounted in them",
			Edits:  edits("internal/mounts/submount_linux.go", "case !at.Kernels() || at != listed && at.FSType == \"autofs\":", "case !at.Kernels() || at != listed:"),
		},
		{
			Name: "proc-unverified", By: "TestProcKept",
			Breaks: "what /proc says comes from the kernel",
			Edits:  edits("internal/mounts/proc_linux.go", "kind != sys.Proc {", "kind == 0 {"),
		},
		{
			Name: "slash-let-through", By: "TestParseMalformed",
			Breaks: "a name from the disk is one name",
			Edits:  edits("internal/sys/dirent_linux.go", "end < 1 || bytes.IndexByte(name[:end], '/') >= 0", "end < 1"),
		},
		{
			Name: "hardlinks-unpinned", By: "TestHardLinks in relabel",
			Breaks: "what was counted is what is labelled: it is pinned first",
			Edits:  edits("internal/walk/walk_linux.go", "m.Confined == mounts.Clone && j.HardLinks == LinksLabel", "m.Confined == mounts.Clone"),
		},
	}
}
