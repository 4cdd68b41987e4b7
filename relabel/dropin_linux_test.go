// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/opencontainers/selinux/go-selinux"
	"github.com/opencontainers/selinux/go-selinux/label"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// library is one of the two that a runtime may call.
type library struct {
	chcon   func(path, label string, recurse bool) error
	relabel func(path, label string, shared bool) error
}

var (
	ours = library{Chcon, Relabel}
	peer = library{selinux.Chcon, label.Relabel}
)

// peerState is where go-selinux keeps whether SELinux is on: it asks once. There
// is no other way to turn it on where the kernel has none. Where in it that stands
// differs between versions.
//
//go:linkname peerState github.com/opencontainers/selinux/go-selinux.state
var peerState [64]byte

// peerEnabled finds go-selinux's answer in its state: one byte behind that which
// says that it is known, and both are bools.
var peerEnabled = sync.OnceValue(func() *byte {
	was := selinux.GetEnabled()
	for i := 1; i < len(peerState); i++ {
		known, enabled := peerState[i-1], &peerState[i]
		if known != 1 || *enabled > 1 || (*enabled == 1) != was {
			continue
		}
		*enabled ^= 1
		is := selinux.GetEnabled() != was
		*enabled ^= 1
		if is {
			return enabled
		}
	}
	return nil
})

// turn says to both libraries that SELinux is on or off, until the test ends.
func turn(t *testing.T, on bool) {
	t.Helper()
	enabled := peerEnabled()
	if enabled == nil {
		t.Fatal("go-selinux keeps its state in another form by now")
	}
	was := *enabled
	t.Cleanup(func() { *enabled = was })
	*enabled = 0
	if on {
		*enabled = 1
	}
}

// contract is one row: what is done to a fresh tree, and what comes of it, as
// outcome words it. What go-selinux does is the same unless peer says what else,
// by a regular expression, and why says why we do not. Where SELinux is on, the
// kernel itself refuses or corrects some of it: policed says what comes of the
// row there, and policedPeer by a regular expression what go-selinux does, if
// that is not the same.
type contract struct {
	name    string
	tree    string
	prepare func(t *testing.T, root string)
	do      func(l library, root string) error
	want    string
	peer    string
	why     string

	policed, policedPeer string
}

// TestDropinContract holds both libraries against one table.
func TestDropinContract(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	dir := on(t, "tmpfs")
	for i, row := range contracts() {
		if treetest.Policed() && row.policed != "" {
			row.want, row.peer = row.policed, row.policedPeer
		}
		t.Run(row.name, func(t *testing.T) {
			have := map[string]string{}
			for name, l := range map[string]library{"ours": ours, "peer": peer} {
				t.Run(name, func(t *testing.T) { have[name] = row.outcome(t, mkdir(t, dir, fmt.Sprint(i, name)), l) })
			}
			if have["ours"] != row.want {
				t.Errorf("does  %s\nwants %s", have["ours"], row.want)
			}
			switch {
			case row.peer == "" && have["peer"] != row.want:
				t.Errorf("go-selinux does something else, and no reason is given: %s", have["peer"])
			case row.peer != "" && (row.why == "" || have["peer"] == row.want || !regexp.MustCompile("^"+row.peer+"$").MatchString(have["peer"])):
				t.Errorf("go-selinux was said to differ by %s, because %q: %s", row.peer, row.why, have["peer"])
			case row.peer != "":
				t.Logf("we do %q\ngo-selinux does %q\nbecause %s", have["ours"], have["peer"], row.why)
			}
		})
	}
}

// outcome does what the row says, and words what came of it: the errors, and
// each entry that has another label than before, or was touched.
func (c contract) outcome(t *testing.T, dir string, l library) string {
	if c.tree == "" {
		c.tree = small
	}
	root := grow(t, dir, c.tree)
	if c.prepare != nil {
		c.prepare(t, root)
	}
	before := treetest.List(t, root)
	touches := strings.Contains(c.peer, "touched")
	if touches {
		time.Sleep(15 * time.Millisecond) // longer than the clock of ctime ticks
	}
	err := c.do(l, root)
	out := told(root, err) + "; "
	var changed []string
	after := treetest.List(t, root)
	for _, p := range slices.Sorted(maps.Keys(after)) {
		switch now, was := after[p], before[p]; {
		case now.Label == was.Label && now.Ctime != was.Ctime && touches:
			changed = append(changed, p+" touched")
		case now.Label == was.Label:
		case now.Label == newLabel:
			changed = append(changed, p)
		default:
			changed = append(changed, p+"="+strings.Trim(strconv.Quote(now.Label), `"`))
		}
	}
	if n := len(changed); n > 10 {
		out += fmt.Sprintf("%d entries", n)
		if after["."].Label == newLabel {
			out += ", the root too"
		}
		return out
	}
	return out + strings.Join(changed, " ")
}

// told words an error. Whatever is said of an entry has to be an *fs.PathError
// with its whole path, and a bare errno.
func told(root string, err error) string {
	switch {
	case err == nil:
		return "nil"
	case errors.Is(err, selinux.ErrEmptyPath):
		return "empty path"
	case errors.Is(err, selinux.ErrInvalidLabel):
		return "invalid label"
	case strings.HasPrefix(err.Error(), "SELinux relabeling of /") && strings.Contains(err.Error(), " is not allowed"):
		return "refused"
	}
	all := []error{err}
	if several, is := err.(*IncompleteError); is {
		all = several.First
	}
	var out []string
	for _, err := range all {
		at, is := err.(*fs.PathError)
		if !is {
			return fmt.Sprintf("%T %v", err, err)
		}
		e, is := at.Err.(syscall.Errno)
		if !is {
			return fmt.Sprintf("%T %v", at.Err, at.Err)
		}
		text := unix.ErrnoName(e) + " "
		// What is found missing is found by different calls.
		if strings.HasPrefix(at.Op, "lsetxattr(label=") && e != unix.EINVAL && e != unix.ENOENT && e != unix.ENOTDIR {
			text = "write " + text
		}
		path := strings.TrimPrefix(strings.TrimPrefix(at.Path, root), "/")
		if path == "" {
			path = "."
		}
		if len(path) > 200 {
			path = path[:20] + "..."
		}
		out = append(out, strings.Trim(strconv.Quote(text+path), `"`))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
