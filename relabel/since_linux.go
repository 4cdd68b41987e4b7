// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// SkipChanged rests on a mark that a commit leaves on the root beside the label:
// when the run began by which everything beneath the root bears it. What was
// created in a directory since, renamed into it or removed from it has moved the
// directory's change time (ctime) past that, and nobody can set a change time
// back. So a directory with an older one holds what it held, and need not be
// read; only the directories in it are looked at in turn.
//
// A directory that was moved here from outside the tree may hold anything, under
// old change times. But the rename has moved two: that of the directory it is in
// now, and its own (rename sets it on the filesystems that sys.KeepsTimes names,
// though no standard asks for it). Where both are new, all beneath is read.
//
// The mark cannot be forged from a container: attributes trusted.* take
// CAP_SYS_ADMIN in the first user namespace. What it does not vouch for: labels
// that were changed in place, and changes made while the clock was set back.

// markName is the attribute that holds the mark.
const markName = "trusted.fastlabel"

// mark is what a commit says. Times are in nanoseconds since 1970.
type mark struct {
	label string
	// start of the run by the clock from which files get their times, less what
	// a filesystem may cut off it.
	start int64
	// root is the modification time of the root, 0 if it may have changed while
	// it was read. Writing the mark itself moves the change time.
	root int64
	left int64 // when the mark was left
	// entries were met by the last run that looked at all, and written by it.
	entries, written int64
	// transid is the transaction in which the run began, on that filesystem
	// alone, for bulk_linux.go; 0 and "-" for none.
	transid uint64
	fsid    string
}

const markForm = "version=1 label=%s start=%d root=%d left=%d entries=%d written=%d transid=%d fsid=%s"

func (k mark) String() string {
	return fmt.Sprintf(markForm, k.label, k.start, k.root, k.left, k.entries, k.written, k.transid, k.fsid)
}

// parseMark reads a mark; one that is not exactly as String writes it is none.
func parseMark(text string) (k mark, ok bool) {
	n, err := fmt.Sscanf(text, markForm, &k.label, &k.start, &k.root, &k.left, &k.entries, &k.written, &k.transid, &k.fsid)
	if err != nil || n != 8 || k.String() != text {
		return mark{}, false
	}
	return k, true
}

// vouches says whether the mark holds at now, for want.
func (k mark) vouches(want string, now time.Time) bool {
	return k.label == want && k.start > 0 && k.start <= k.left && k.left <= now.UnixNano()
}

// tick is how far the change time of the root may lie behind the mark that
// moved it: the longest tick of the kernel's clock, and time to write.
const tick = 20 * time.Millisecond

// kept says that nothing was created in, renamed into or removed from the root
// since the mark was left.
func (k mark) kept(root sys.Stat) bool {
	return k.root != 0 && root.Mtime.UnixNano() == k.root && root.Ctime.UnixNano() <= k.left+int64(tick)
}

// extent is how much of a directory is to be looked at.
type extent uint8

const (
	everything extent = iota // whatever is beneath it
	entries                  // its entries; of what is beneath them, what changed
	changes                  // of what is beneath it, what changed
)

// extent is that of a directory in parent.
func (m *mount) extent(parent *dir, st sys.Stat) extent {
	changed := !st.Ctime.Before(m.since)
	switch {
	case parent.extent == everything:
		return everything
	case parent.extent == entries && (changed || st.Dev != m.st.Dev):
		return everything // moved here; or a subvolume, which begins with old times
	case changed:
		return entries
	}
	return changes
}

// relyOn finds the mark that the run can rely on, and says so if there is none.
func (c *record) relyOn() {
	if c.o.Skip != SkipChanged {
		return
	}
	m := &c.root.mount
	if !m.dated {
		c.note("the times on this filesystem do not tell what has changed: everything is read")
		return
	}
	c.at("fgetxattr")
	defer c.at("")
	attr := sys.NewAttr(markName, nil)
	n, e := attr.Fgetxattr(c.fd)
	k, ok := mark{}, false
	if e == 0 {
		k, ok = parseMark(string(attr.Value(n)))
	}
	if !ok || !c.right() || !k.vouches(c.want, c.began) {
		c.note("no earlier run vouches for this label here: everything is read")
		return
	}
	if c.fsid != k.fsid || c.transid < k.transid {
		k.transid = 0
	}
	c.mark = k
	c.tell(func(told *Report) { told.Since = time.Unix(0, k.start) })
}

// narrow has the walk look only at what has changed since the mark.
func (c *record) narrow() {
	if c.mark.start == 0 {
		return
	}
	c.root.since = time.Unix(0, c.mark.start)
	c.root.top.extent = entries
	if st, e := sys.Fstatx(c.fd); e == 0 && c.mark.kept(st) {
		c.root.top.extent = changes
		c.add(tally{unchanged: 1})
	}
}

// unmark takes the mark off, before what it says becomes untrue.
func (c *record) unmark() {
	c.at("fremovexattr")
	defer c.at("")
	switch e := sys.NewAttr(markName, nil).Fremovexattr(c.fd); e {
	case 0, errNoLabel, syscall.EPERM, syscall.ENOTSUP: // it is off, was not there, or never could be
	default:
		c.note("the mark of an earlier run could not be removed: %v", e)
	}
}

// leaveMark leaves a mark if everything bears the label. It is no failure if it
// cannot: the next run then reads everything.
func (c *record) leaveMark() {
	m := &c.root.mount
	relied := c.mark.start != 0
	c.mu.Lock()
	sum := c.total
	c.mu.Unlock()
	switch {
	case !m.dated || c.o.NoSync:
		return
	case len(c.exclude) > 0 || sum.of[skipped] > 0 || len(beneath(c.proc.mounts, c.root.real)) > 0:
		return // there is more in the tree than was looked at
	case !c.commits && c.o.Skip != SkipChanged:
		return // nothing is written where all is right
	case relied && sum.of[written] == 0 && sum.seen < c.little():
		return // the old one holds, and what has changed is soon looked at again
	}
	k := mark{label: c.want, start: c.began.Truncate(time.Second).UnixNano(), left: sys.CoarseTime().UnixNano()}
	if c.quiet {
		k.root = c.mtime.UnixNano()
	}
	k.entries, k.written = c.mark.entries, c.mark.written
	if !relied {
		k.entries, k.written = sum.seen, sum.of[written]
	}
	k.fsid, k.transid = c.fsid, c.transid
	c.at("fsetxattr")
	defer c.at("")
	e := sys.NewAttr(markName, []byte(k.String())).Fsetxattr(c.fd)
	if e != 0 && c.o.Skip == SkipChanged {
		c.note("no mark could be left for the next run: %v", e)
	}
}

// little is how many entries are looked at again sooner than the root is written
// for a new mark.
func (c *record) little() int64 {
	least := int64(2)
	if c.inBulk {
		least = neighbours
	}
	return max(least, c.mark.entries/100)
}

// subdirectories makes work of the directories among the records of d, of which
// nothing else is to be looked at. One that has not changed and has no directory
// in it is done with here.
func (w *worker) subdirectories(d *dir, fd int, records []byte) {
	for len(records) > 0 && !w.stopped() {
		e, length, err := sys.Parse(records)
		if err != nil {
			w.spoil(d, "getdents64", err)
			return
		}
		records = records[length:]
		if e.Kind != sys.KindDir && e.Kind != sys.KindUnknown || sys.IsDot(e.Name) {
			continue
		}
		t := target{fd: fd, name: e.Cname()}
		w.name.Store(t.name)
		w.now(asking)
		st, errno := t.stat()
		if errno == 0 {
			if st.Kind != sys.KindDir {
				continue
			}
			if why, is := w.m.left[identify(st)]; is {
				if why != "" {
					w.tally.count(w.leave(d, t, why))
				}
				continue
			}
			if st.Links == childless && w.m.extent(d, st) == changes {
				w.tally.unchanged++
				continue
			}
		} else if judge(errno) == gone {
			continue
		}
		w.tally.found++
		w.cache.expect(d)
		w.pool.Push(item{dir: d, name: string(e.Name[:len(e.Name)+1])})
	}
}

// childless is the link count of a directory without directories in it: its name
// and its "."; on btrfs each directory has 1.
const childless = 2

// measure sets the extent of d, which was just opened, and says whether there is
// nothing in it to be read.
func (w *worker) measure(d *dir) bool {
	if d.parent.extent == everything {
		return false
	}
	w.now(asking)
	st, e := sys.Fstatx(int(d.fd))
	if e != 0 {
		return false // everything in it, then
	}
	if d.extent = w.m.extent(d.parent, st); d.extent != changes {
		return false
	}
	w.tally.unchanged++
	return st.Links == childless
}
