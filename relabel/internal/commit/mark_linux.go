// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"fmt"
	"time"

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
func (c *Root) proved(sum Sum) proof {
	switch {
	case c.DryRun || c.NoSync || !c.Dated:
		return provedNothing
	case sum.Failed > 0 || sum.Skipped > 0 || c.Partial():
		return provedNothing
	case c.earlier.Start != 0:
		return provedChanges
	}
	return provedAll
}

// mark is the one that the proof is good for: now is what this run has to say,
// earlier the mark that it relied on. There is none for nothing.
func (p proof) mark(now, earlier Mark) (Mark, bool) {
	if p == provedChanges {
		now.Entries, now.Written = earlier.Entries, earlier.Written
	}
	return now, p != provedNothing
}

// MarkName is the attribute that holds the mark. It cannot be forged from a
// container: attributes trusted.* take CAP_SYS_ADMIN in the first user namespace.
const MarkName = "trusted.fastlabel"

// Mark is what a commit says: everything beneath the root had the label when the
// run ended, and what is created, renamed or moved in from its start on shows by
// its times. It does not vouch for labels that are changed in place, nor for what
// is done while the clock is set back. Times are in nanoseconds since 1970.
type Mark struct {
	Label string
	Root  string // which directory it was left on: see natal
	// Start of the run by the clock from which files get their times, less what
	// a filesystem may cut off it.
	Start int64
	Left  int64 // when the mark was left
	// Entries were met by the last run that looked at all, and Written by it.
	Entries, Written int64
}

// markForm has version 3: marks of version 1 were left for what nothing had proved,
// those of version 2 did not say for which directory.
const markForm = "version=3 label=%s root=%s start=%d left=%d entries=%d written=%d"

func (k Mark) String() string {
	return fmt.Sprintf(markForm, k.Label, k.Root, k.Start, k.Left, k.Entries, k.Written)
}

// parseMark reads a mark; one that is not exactly as String writes it is none.
func parseMark(text string) (k Mark, ok bool) {
	n, err := fmt.Sscanf(text, markForm, &k.Label, &k.Root, &k.Start, &k.Left, &k.Entries, &k.Written)
	if err != nil || n != 6 || k.String() != text {
		return Mark{}, false
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

// vouches says whether the mark holds at now, on the directory root.
func (k Mark) vouches(root string, now time.Time) bool {
	return root != "" && k.Root == root && k.Start > 0 && k.Start <= k.Left && k.Left <= now.UnixNano()
}

// Last is the mark that the last run left on the directory that fd names, which may be
// an O_PATH one; the zero Mark if there is none that holds, or it cannot be read.
func Last(fd int) Mark {
	attr := sys.NewAttr(MarkName, nil)
	n, e := attr.GetxattrFd(fd)
	if e != 0 {
		return Mark{}
	}
	k, ok := parseMark(string(attr.Value(n)))
	if !ok || !k.vouches(natal(fd), time.Now()) {
		return Mark{}
	}
	return k
}

// ReadMark finds the mark of an earlier run, before it is taken off; the zero Mark if
// there is none that holds. relied says that what had not changed by it need not be
// looked at, as the run is to do where it can; if it cannot, that is noted.
func (c *Root) ReadMark() (k Mark, relied bool) {
	root := natal(c.FD)
	if c.Since && (!c.Dated || root == "") {
		c.Note("the times on this filesystem do not tell what has changed: everything is read")
		return Mark{}, false
	}
	c.At("fgetxattr")
	defer c.At("")
	attr := sys.NewAttr(MarkName, nil)
	if n, e := attr.Fgetxattr(c.FD); e == 0 {
		k, _ = parseMark(string(attr.Value(n)))
	}
	if !k.vouches(root, c.began) {
		k = Mark{}
	}
	switch {
	case c.Since && c.Right() && k.Label == c.Want:
		c.earlier = k
		return k, true
	case c.Since:
		c.Note("no earlier run vouches for this label here: everything is read")
	}
	return k, false
}

// unmark takes the mark off, before what it says becomes untrue.
func (c *Root) unmark() {
	c.At("fremovexattr")
	defer c.At("")
	if e := remove(c.FD, MarkName, (*sys.Attr).Fremovexattr); e != 0 {
		c.Note("the mark of an earlier run could not be removed: %v", e)
	}
}

// leaveMark leaves the mark that the run's proof is good for. It is no failure if
// it cannot: the next run then reads everything.
func (c *Root) leaveMark() {
	sum := c.Sum()
	proved := c.proved(sum)
	k, may := proved.mark(Mark{
		Label: c.Want, Root: natal(c.FD), Start: c.began.Truncate(time.Second).UnixNano(), Left: sys.CoarseTime().UnixNano(),
		Entries: sum.Seen, Written: sum.Written,
	}, c.earlier)
	switch {
	case !may, k.Root == "":
		return
	case !c.wrong && !c.Since:
		return // nothing is written where all is right
	case proved == provedChanges && sum.Written == 0 && sum.Seen < max(2, c.earlier.Entries/100):
		return // the old one holds, and what has changed is soon looked at again
	}
	c.At("fsetxattr")
	defer c.At("")
	e := sys.NewAttr(MarkName, []byte(k.String())).Fsetxattr(c.FD)
	if e != 0 && c.Since {
		c.Note("no mark could be left for the next run: %v", e)
	}
}
