// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// proof is what a run has shown by its end of all that is beneath the root. From it
// alone follows which mark the run may leave.
type proof uint8

const (
	// provedNothing: an entry failed or was left alone, something is mounted beneath the
	// root, it may not be on disk, or times here do not tell what has changed.
	provedNothing proof = iota
	// provedChanges: what has changed since an earlier mark has the label. With what
	// that mark says, everything has.
	provedChanges
	// provedAll: everything was looked at, and has the label.
	provedAll
)

// proved is called when the root is committed and its second reading has ended.
func (c *record) proved() proof {
	sum := c.counts()
	switch {
	case c.o.DryRun || c.o.NoSync || !c.root.dated:
		return provedNothing
	case sum.of[failure] > 0 || sum.of[skipped] > 0 || len(c.exclude) > 0 || len(mountinfo.Beneath(c.proc.Mounts, c.root.Real)) > 0:
		return provedNothing
	case c.earlier.start != 0:
		return provedChanges
	}
	return provedAll
}

// mark is the one that the proof is good for: now is what this run has to say,
// earlier the mark that it relied on. There is none for nothing.
func (p proof) mark(now, earlier mark) (mark, bool) {
	if p == provedChanges {
		now.entries, now.written = earlier.entries, earlier.written
	}
	return now, p != provedNothing
}

// markName is the attribute that holds the mark. It cannot be forged from a
// container: attributes trusted.* take CAP_SYS_ADMIN in the first user namespace.
const markName = "trusted.fastlabel"

// mark is what a commit says: everything beneath the root had the label when the
// run ended, and what is created, renamed or moved in from its start on shows by
// its times. It does not vouch for labels that are changed in place, nor for what
// is done while the clock is set back. Times are in nanoseconds since 1970.
type mark struct {
	label string
	root  string // which directory it was left on: see natal
	// start of the run by the clock from which files get their times, less what
	// a filesystem may cut off it.
	start int64
	left  int64 // when the mark was left
	// entries were met by the last run that looked at all, and written by it.
	entries, written int64
}

// markForm has version 3: marks of version 1 were left for what nothing had proved,
// those of version 2 did not say for which directory.
const markForm = "version=3 label=%s root=%s start=%d left=%d entries=%d written=%d"

func (k mark) String() string {
	return fmt.Sprintf(markForm, k.label, k.root, k.start, k.left, k.entries, k.written)
}

// parseMark reads a mark; one that is not exactly as String writes it is none.
func parseMark(text string) (k mark, ok bool) {
	n, err := fmt.Sscanf(text, markForm, &k.label, &k.root, &k.start, &k.left, &k.entries, &k.written)
	if err != nil || n != 6 || k.String() != text {
		return mark{}, false
	}
	return k, true
}

// natal tells a directory from every other, to which a copy such as cp -a or rsync -X
// makes may carry its attributes: beside what has been there for long. It is "" where
// the filesystem does not say when it was created.
func natal(fd int) string {
	at, e := sys.Place(fd)
	if e != 0 || at.Born == 0 {
		return ""
	}
	return fmt.Sprintf("%x-%x", at.Ino, at.Born)
}

// vouches says whether the mark holds at now, for want on the directory root.
func (k mark) vouches(want, root string, now time.Time) bool {
	return k.label == want && root != "" && k.root == root && k.start > 0 && k.start <= k.left && k.left <= now.UnixNano()
}

// readMark finds the mark that the run can rely on, and says so if there is none,
// and for State how many entries there were.
func (c *record) readMark() {
	relies := c.o.Skip == SkipUnchanged
	if !relies && c.o.OnBegin == nil {
		return
	}
	root := natal(c.fd)
	if relies && (!c.root.dated || root == "") {
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
	switch {
	case relies && ok && c.right() && k.vouches(c.want, root, c.began):
		c.earlier = k
		c.tell(func(report *Report) { report.Since = time.Unix(0, k.start) })
		return
	case relies:
		c.note("no earlier run vouches for this label here: everything is read")
	}
	if ok && len(c.exclude) == 0 && k.vouches(k.label, root, c.began) {
		c.lastRun.Store(k.entries)
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

// leaveMark leaves the mark that the run's proof is good for. It is no failure if
// it cannot: the next run then reads everything.
func (c *record) leaveMark() {
	proved := c.proved()
	sum := c.counts()
	k, may := proved.mark(mark{
		label: c.want, root: natal(c.fd), start: c.began.Truncate(time.Second).UnixNano(), left: sys.CoarseTime().UnixNano(),
		entries: sum.seen, written: sum.of[written],
	}, c.earlier)
	switch {
	case !may, k.root == "":
		return
	case !c.commits && c.o.Skip != SkipUnchanged:
		return // nothing is written where all is right
	case proved == provedChanges && sum.of[written] == 0 && sum.seen < max(2, c.earlier.entries/100):
		return // the old one holds, and what has changed is soon looked at again
	}
	c.at("fsetxattr")
	defer c.at("")
	e := sys.NewAttr(markName, []byte(k.String())).Fsetxattr(c.fd)
	if e != 0 && c.o.Skip == SkipUnchanged {
		c.note("no mark could be left for the next run: %v", e)
	}
}

// counts is what was counted so far.
func (r *run) counts() tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}
