// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// race is one way in which its owner turns a tree while it is labelled. At the
// top of each volume lie the root, which is the tree, and what is outside: lone,
// a file, and twin, with entries of the same names as the root's. What is moved
// out goes there too.
type race struct {
	id, name string
	n        int    // what is turned is there so often, named with N from 0 on
	tree     string // of root and of twin, which stand for AT
	link     string // one in the root or, for the root itself, beside it
	target   string // of the link; it may begin with TOP
	turn     func(top string, n int) turner
	mounts   bool // the command is called with -x
	few      bool // every other run has few descriptors, and looks names up again
	preys    []prey
	why      string // why go-selinux is not among them
}

// turner turns the tree and turns it back.
type turner func() error

// prey is what the attack must lead astray, for each way that it names.
type prey struct {
	name   string
	ways   []string // of a broken build
	mutant string
	peer   func(label, root string) *exec.Cmd
}

var (
	goSelinux = prey{name: "go-selinux", peer: gochcon}
	gnuChcon  = prey{name: "chcon -R -h", peer: func(label, root string) *exec.Cmd {
		return exec.Command("chcon", "-R", "-h", label, root)
	}}
	// What an administrator types.
	findSetfattr = prey{name: "find -exec setfattr", peer: func(label, root string) *exec.Cmd {
		return exec.Command("find", root, "-type", "f", "-exec", "setfattr", "-n", treetest.Attr, "-v", label, "{}", "+")
	}}
	// All locks against links are gone, but links are still passed by:
	// only a race leads astray.
	follows = prey{mutant: "nofollow-dropped"}
	// No clone and no look at mounts, but the same calls.
	crosses = prey{mutant: "xdev-dropped"}
	// After a directory the walk goes on in what is then above it.
	ascends = prey{mutant: "dotdot"}
)

// in is the broken build made to go those ways.
func (c prey) in(ways ...string) prey {
	c.ways, c.name = ways, c.mutant
	return c
}

const (
	setxattrat = "clone/setxattrat"
	openat2    = "openat2/fd"
	mountid    = "mountid/fd"
)

const flat = `
dir AT/dN
file AT/dN/f%02d x24
dir AT/dN/q
file AT/dN/q/f%02d x8
`

var races = []race{
	{
		id: "dir-rel", name: "directory ↔ relative link", n: 8, tree: flat,
		link: "root/lN", target: "../twin/dN", turn: exchange("root/dN", "root/lN"),
		// In a clone, ".." does not leave the top.
		preys: []prey{goSelinux, follows.in(openat2, mountid)},
	},
	{
		id: "dir-abs", name: "directory ↔ absolute link", n: 8, tree: flat,
		link: "root/lN", target: "TOP/twin/dN", turn: exchange("root/dN", "root/lN"),
		preys: []prey{goSelinux, follows.in(setxattrat, openat2, mountid)},
	},
	{
		id: "parent", name: "parent directory ↔ link", n: 2, few: true,
		tree: `
dir AT/aN
dir AT/aN/b%02d x20
dir AT/aN/b%02d/c x20
file AT/aN/b%02d/c/f x20
file AT/aN/b%02d/f x20
`,
		link: "root/lN", target: "TOP/twin/aN", turn: exchange("root/aN", "root/lN"),
		preys: []prey{goSelinux, follows.in(setxattrat, openat2, mountid)},
	},
	{
		id: "file", name: "file ↔ link",
		n: 8, tree: "file AT/fN\n",
		link: "root/lN", target: "TOP/lone", turn: exchange("root/fN", "root/lN"),
		preys: []prey{findSetfattr, follows.in(setxattrat, openat2, mountid)},
		why:   "go-selinux writes by lsetxattr, which does not follow the last name",
	},
	{
		id: "dir-file", name: "directory ↔ file", n: 8, tree: flat + "file AT/eN\n", turn: exchange("root/dN", "root/eN"),
		why: "no control: nothing leads outside; that the counts add up is judged",
	},
	{
		// A link as PATH is labelled itself: it is no outside entry.
		id: "root", name: "root ↔ link", n: 1, tree: flat,
		link: "l", target: "TOP/twin", turn: exchange("root", "l"),
		preys: []prey{goSelinux, follows.in(setxattrat, openat2, mountid)},
	},
	{
		id: "move", name: "subtree moved out and back",
		n: 4, tree: `
dir AT/sN
file AT/sN/f%02d x24
dir AT/sN/q
file AT/sN/q/f%02d x8
`,
		turn:  shift("root/sN", "twin/tN"),
		preys: []prey{ascends.in(openat2, mountid)},
		why:   "go-selinux looks up whole paths, and at the old one is nothing; in a clone the kernel refuses \"..\" out of it",
	},
	{
		id: "dir-mount", name: "directory bind mount", n: 8, tree: flat, mounts: true,
		turn:  bind("twin/d0", "root/dN"),
		preys: []prey{goSelinux, gnuChcon, crosses.in(setxattrat, openat2, mountid)},
	},
	{
		id: "file-mount", name: "file bind mount", mounts: true,
		n: 8, tree: "file AT/fN\n", turn: bind("lone", "root/fN"),
		preys: []prey{goSelinux, gnuChcon, crosses.in(setxattrat, openat2, mountid)},
	},
}

// grow makes the volume of r and gives its top.
func (r race) grow(t *testing.T, fs treetest.FS) string {
	t.Helper()
	top := fs.Dir(t)
	text := "default label=" + oldLabel + "\nfile lone\n"
	for i := range r.n {
		for _, at := range []string{"root", "twin"} {
			text += strings.ReplaceAll(numbered(r.tree, i), "AT", at)
		}
		if r.link != "" {
			text += "link " + numbered(r.link, i) + " " + strings.Replace(numbered(r.target, i), "TOP", top, 1) + "\n"
		}
	}
	text += "file root/g%02d x20\nfile twin/g%02d x20\n"
	treetest.Build(t, top, treetest.Text(t, text))
	return top
}

// size makes the root too large for one buffer where the way is in a clone, in which a
// small tree is not labelled, and small again where it is not.
func (r race) size(t *testing.T, top, way string) {
	t.Helper()
	for i := range 150 {
		path, err := filepath.Join(top, "root", fmt.Sprintf("%0240d", i)), error(nil)
		if strings.HasPrefix(way, "clone/") {
			err = os.WriteFile(path, nil, 0o600)
		} else if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		treetest.Must(t, err)
	}
}

// outside records what must not change, but for what was moved there, and for
// the ctimes of the two directories in which the attacker itself renames.
func outside(t *testing.T, top string) map[string]treetest.Item {
	t.Helper()
	twin := filepath.Join(top, "twin")
	paths, err := filepath.Glob(filepath.Join(twin, "[^t]*"))
	treetest.Must(t, err)
	for i := range paths {
		paths[i] += "/..."
	}
	m := treetest.Snapshot(t, append(paths, top, twin, filepath.Join(top, "lone"))...)
	for _, p := range []string{top, twin} {
		it := m[p]
		it.Ctime = 0
		m[p] = it
	}
	return m
}

// attacker is a thread that turns the tree and never waits, until it is ended.
type attacker struct {
	over  atomic.Bool
	ended chan struct{}
	err   error
}

// attack begins to turn the tree at top.
func (r race) attack(top string) *attacker {
	a := &attacker{ended: make(chan struct{})}
	turn := r.turn(top, r.n)
	go func() {
		defer close(a.ended)
		for !a.over.Load() {
			if a.err = turn(); a.err != nil {
				return
			}
		}
	}()
	return a
}

// end leaves the tree as it was in the beginning.
func (a *attacker) end(t *testing.T) {
	t.Helper()
	a.over.Store(true)
	<-a.ended
	treetest.Check(t, a.err)
}

func exchange(a, b string) func(string, int) turner { return rename(a, b, unix.RENAME_EXCHANGE) }

func shift(from, to string) func(string, int) turner { return rename(from, to, 0) }

// rename renames each a to its b, and then each b to its a.
func rename(a, b string, flags uint) func(string, int) turner {
	return func(top string, n int) turner {
		from, to := pathsOf(top, a, n), pathsOf(top, b, n)
		all := func(from, to []string) error {
			for i := range from {
				if err := unix.Renameat2(unix.AT_FDCWD, from[i], unix.AT_FDCWD, to[i], flags); err != nil {
					return err
				}
			}
			return nil
		}
		return func() error {
			if err := all(from, to); err != nil {
				return err
			}
			return all(to, from)
		}
	}
}

// bind mounts what over the first on, moves the mount from there to the next,
// and so on, and detaches it from the last. A mount that goes away costs the
// kernel many times what a move does.
func bind(what, on string) func(string, int) turner {
	return func(top string, n int) turner {
		from, over := pathsOf(top, what, 1)[0], pathsOf(top, on, n)
		return func() error {
			if err := unix.Mount(from, over[0], "", unix.MS_BIND, ""); err != nil {
				return err
			}
			for i := range rounds * n {
				if err := unix.Mount(over[i%n], over[(i+1)%n], "", unix.MS_MOVE, ""); err != nil {
					return err
				}
			}
			return unix.Unmount(over[0], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
	}
}

// rounds is how often a mount goes round before it is detached. To detach is
// to sleep a while with nothing mounted: less often, and most of the time
// something is.
const rounds = 16

// numbered is text for the ith of what is turned.
func numbered(text string, i int) string { return strings.ReplaceAll(text, "N", strconv.Itoa(i)) }

// pathsOf gives the n paths of name.
func pathsOf(top, name string, n int) (paths []string) {
	for i := range n {
		paths = append(paths, filepath.Join(top, numbered(name, i)))
	}
	return paths
}
