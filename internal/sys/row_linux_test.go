// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"fmt"
	gobuild "go/build"
	"go/build/constraint"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

const rowLabel = "u:r:t:s0:c1,c2"

// holds is what an entry of a row may have at the start.
var holds = map[byte]string{
	'r': rowLabel,
	'z': rowLabel + "\x00", // right: one NUL is the end of a string
	'Z': rowLabel + "\x00\x00",
	'w': "u:r:t:s0:c1,c3",
	'p': rowLabel[:len(rowLabel)-1],
	'l': rowLabel + strings.Repeat("x", 200), // longer than what is offered
	'n': "",                                  // no label
}

// newRow makes an entry for each letter of the state ('-' is a name that is not
// there) in a new directory, and a row of them.
func newRow(t *testing.T, state string) (*Row, int) {
	t.Helper()
	fd := within(t, treetest.Fresh(t, "tmpfs"), "")
	r := &Row{Stop: new(atomic.Bool)}
	var names []byte
	for i, c := range []byte(state) {
		name := fmt.Sprint("f", i)
		r.At[i] = uint32(len(names))
		names = append(append(names, "head"+name...), 0)
		if c == '-' {
			continue
		}
		treetest.Must(t, os.WriteFile(name, nil, 0o600))
		if holds[c] != "" {
			treetest.Must(t, unix.Lsetxattr(name, treetest.Attr, []byte(holds[c]), 0))
		}
	}
	r.Base, r.Head = unsafe.SliceData(names), uint32(len("head"))
	return r, fd
}

// TestMend: what a row finds and writes, and where it ends.
func TestMend(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "setxattrat")
	for _, test := range []struct {
		state string
		order Sweep
		from  int
		stop  bool // the flag ends a row before its next name
		want  Done
		last  int    // the name of the last call
		wrote bool   // it was a write
		after string // r is right
	}{
		{state: "rzZwpln", want: Done{Right: 2, Written: 5, Wrong: 5}, last: 6, wrote: true, after: "rzrrrrr"},
		{state: "rzwn", want: Done{Right: 2, Written: 2, Wrong: 2}, last: 3, wrote: true, after: "rzrr"},
		{state: "wwrww", want: Done{Right: 1, Written: 4, Wrong: 2}, last: 4, wrote: true, after: "rrrrr"},
		{state: "rw-w", want: Done{Right: 1, Written: 1, Wrong: 1, Errno: unix.ENOENT}, last: 2, after: "rr-w"},
		{state: "wwww", from: 2, want: Done{Written: 2, Wrong: 2}, last: 3, wrote: true, after: "wwrr"},
		{state: "wwww", order: Sweep{Blind: true, Check: 64}, want: Done{Written: 4, Turn: 4}, last: 3, wrote: true, after: "rrrr"},
		{state: "ww-w", order: Sweep{Blind: true, Check: 64}, want: Done{Written: 2, Turn: 3, Write: true, Errno: unix.ENOENT}, last: 2, wrote: true, after: "rr-w"},
		// Every third is read: one that is wrong goes on, one that is right ends it.
		{state: "wwwwwrw", order: Sweep{Blind: true, Check: 3}, want: Done{Right: 1, Written: 5, Turn: 6}, last: 5, after: "rrrrrrw"},
		{state: "wwww", order: Sweep{Blind: true, Turn: 62, Check: 64}, want: Done{Written: 4, Wrong: 1, Turn: 66}, last: 3, wrote: true, after: "rrrr"},
		{state: "ww", stop: true, last: -1, after: "ww"},
	} {
		for way, name := range map[Way]string{ByName: "name", ByThread: "cwd", ByDescriptor: "pin"} {
			t.Run(test.state+"/"+name, func(t *testing.T) {
				if strings.ContainsAny(test.state, "Zpl") {
					treetest.Need(t, "plain") // none of them is a context
				}
				r, fd := newRow(t, test.state)
				o := test.order
				o.Way, o.Dir = way, fd
				if way == ByThread {
					o.Dir = -1
				}
				r.Stop.Store(test.stop)
				a := NewAttr(treetest.Attr, rowLabel)
				got := a.Mend(r, test.from, len(test.state), o)
				if got != test.want {
					t.Errorf("got  %+v\nwant %+v", got, test.want)
				}
				if last, wrote := r.Calling(); last != test.last || wrote != test.wrote {
					t.Errorf("the last call is of name %d, a write: %t; want %d, %t", last, wrote, test.last, test.wrote)
				}
				for i, c := range []byte(test.after) {
					value := make([]byte, 512)
					n, err := unix.Lgetxattr(fmt.Sprint("f", i), treetest.Attr, value)
					if c != '-' && (err != nil || treetest.Shown(value[:n]) != treetest.Shown([]byte(holds[c]))) {
						t.Errorf("%d has %q, not %q: %v", i, value[:max(n, 0)], holds[c], err)
					}
				}
			})
		}
	}
}

// TestVisit: a directory is opened, labelled and read, or it is said at which
// step it ended.
func TestVisit(t *testing.T) {
	treetest.Need(t, "root", "tmpfs", "setxattrat")
	tree := "dir d\nfile d/a\nfile d/b\nfile f\nlink l d\n"
	for _, test := range []struct {
		name, holds string
		how         Labelling
		room        int
		want        Visit // without FD and N
		names       string
	}{
		{name: "d", holds: "u:r:t:s0", want: Visit{Wrong: true, End: true, Step: StepDone}, names: "a b"},
		{name: "d", holds: rowLabel, want: Visit{End: true, Step: StepDone}, names: "a b"},
		{name: "d", holds: rowLabel, how: Unread, want: Visit{Wrong: true, End: true, Step: StepDone}, names: "a b"},
		{name: "d", holds: rowLabel, how: ReadOnly, want: Visit{End: true, Step: StepDone}, names: "a b"},
		{name: "d", holds: "u:r:t:s0", how: ReadOnly, want: Visit{Wrong: true, Step: StepRead}},
		{name: "d", holds: strings.Repeat("x", 300), want: Visit{Wrong: true, End: true, Step: StepDone}, names: "a b"},
		{name: "d", room: 100, want: Visit{Wrong: true, Step: StepDone}},
		{name: "f", want: Visit{Step: StepOpen, Errno: unix.ENOTDIR}},
		{name: "l", want: Visit{Step: StepOpen, Errno: unix.ENOTDIR}},
		{name: "none", want: Visit{Step: StepOpen, Errno: unix.ENOENT}},
	} {
		t.Run(fmt.Sprintf("%s %.9s %d %d", test.name, test.holds, test.how, test.room), func(t *testing.T) {
			if strings.HasPrefix(test.holds, "x") {
				treetest.Need(t, "plain") // it is no context
			}
			fd := within(t, treetest.Fresh(t, "tmpfs"), tree)
			if test.holds != "" {
				treetest.Set(t, ".", "d", test.holds)
			}
			buf := make([]byte, 4096)
			if test.room > 0 {
				buf = buf[:test.room]
			}
			a := NewAttr(treetest.Attr, rowLabel)
			var at atomic.Uint32
			toClose, err := unix.Dup(fd)
			treetest.Must(t, err)
			got := a.Visit(toClose, fd, Cname(test.name), OpenDir|NoAtime, test.how, buf, &at)
			opened, n := got.FD, got.N
			got.FD, got.N = 0, 0
			if got.Step == StepRead {
				if has := strings.TrimRight(string(a.Value(n)), "\x00"); has != test.holds {
					t.Errorf("it found %q", has)
				}
				n = 0
			}
			if got != test.want || (opened >= 0) != (test.want.Step > StepOpen) {
				t.Errorf("%s %q: got %+v, descriptor %d\nwant %+v", test.name, test.holds, got, opened, test.want)
			}
			// Where the directory took the number of the one that was closed, it is
			// open again.
			if _, err := unix.FcntlInt(uintptr(toClose), unix.F_GETFD, 0); opened != toClose && err != unix.EBADF {
				t.Errorf("the descriptor to close is still open: %v", err)
			}
			if opened < 0 {
				return
			}
			var names []string
			for _, e := range records(t, buf[:n]) {
				if !IsDot([]byte(e.name)) {
					names = append(names, e.name)
				}
			}
			if slices.Sort(names); strings.Join(names, " ") != test.names {
				t.Errorf("%s: read %q", test.name, names)
			}
			has := rowLabel
			if test.want.Step == StepRead {
				has = test.holds
			}
			if n, e := a.Get(Opened, opened, nil); e != 0 || treetest.Shown(a.Value(n)) != has {
				t.Errorf("%s has %q: %v", test.name, a.Value(max(n, 0)), e)
			}
			Close(opened)
		})
	}
}

// TestRowLetsGo: a row that hangs in the kernel, or one name, here on a frozen filesystem,
// keeps neither its processor nor the garbage collector.
func TestRowLetsGo(t *testing.T) {
	treetest.Need(t, "root", "ext4", "setxattrat")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	fd := within(t, treetest.Fresh(t, "ext4"), "file f\nfile g\ndir d\n")
	for name, call := range map[string]func(a *Attr) Errno{
		"row": func(a *Attr) Errno {
			return a.Mend(&Row{Base: Cname("f"), Stop: new(atomic.Bool)}, 0, 1, Sweep{Way: ByName, Dir: fd}).Errno
		},
		"one": func(a *Attr) Errno { return a.Set(ByName, fd, Cname("g")) },
		"visit": func(a *Attr) Errno {
			v := a.Visit(-1, fd, Cname("d"), OpenDir, Unread, make([]byte, 4096), new(atomic.Uint32))
			Close(v.FD)
			return v.Errno
		},
	} {
		const freeze, thaw = 0xc0045877, 0xc0045878 // FIFREEZE, FITHAW of linux/fs.h
		treetest.Must(t, unix.IoctlSetInt(fd, freeze, 0))
		// Another process, since nothing may move in this one.
		here, err := os.Getwd()
		treetest.Must(t, err)
		guard := exec.Command("sh", "-c", "sleep 60; fsfreeze --unfreeze "+here)
		guard.Dir = "/"
		treetest.Must(t, guard.Start())
		var done atomic.Bool
		answer := make(chan Errno)
		go func() {
			e := call(NewAttr(treetest.Attr, rowLabel))
			done.Store(true)
			answer <- e
		}()
		time.Sleep(100 * time.Millisecond) // it is in the kernel by then
		runtime.GC()
		hung := !done.Load()
		if err := unix.IoctlSetInt(fd, thaw, 0); err != nil {
			t.Errorf("%s: everything stood still until somebody else thawed it", name)
		}
		_ = guard.Process.Kill()
		_ = guard.Wait()
		if e := <-answer; e != 0 || !hung {
			t.Errorf("%s: %v; it hung: %t", name, e, hung)
		}
	}
}

// TestKnownGo fails when a newer Go appears than rowfast_linux.go knows, which would
// otherwise be no more than slow.
func TestKnownGo(t *testing.T) {
	text, err := os.ReadFile("rowfast_linux.go")
	treetest.Must(t, err)
	for line := range strings.Lines(string(text)) {
		if !constraint.IsGoBuild(line) {
			continue
		}
		known, err := constraint.Parse(strings.TrimSpace(line))
		treetest.Must(t, err)
		tags := append([]string{"gc", "go1.26"}, gobuild.Default.ReleaseTags...) // an older Go is slow, and known to be
		if !known.Eval(func(tag string) bool { return slices.Contains(tags, tag) }) {
			t.Errorf("%s is not fast: %s", runtime.Version(), line)
		}
		return
	}
	t.Error("no constraint")
}
