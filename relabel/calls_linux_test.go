// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// flat makes n files in dir, each with a directory record of 32 bytes.
func flat(t testing.TB, dir string, n int) {
	t.Helper()
	treetest.Must(t, os.MkdirAll(dir, 0o755))
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	treetest.Must(t, err)
	defer unix.Close(fd)
	for i := range n {
		treetest.Must(t, unix.Mknodat(fd, fmt.Sprintf("f%011d", i), unix.S_IFREG|0o644, 0))
	}
}

// settle makes the root look as if nothing was created in it lately, so that
// its entries are not read a second time.
func settle(t *testing.T, root string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	treetest.Must(t, os.Chtimes(root, old, old))
	time.Sleep(20 * time.Millisecond) // longer than a tick: that has set its ctime
}

// below runs the command on root under strace, in the way asked for, and gives
// the calls after the open of root; not those on the lock's directory.
func below(t *testing.T, deny map[int]syscall.Errno, root string, args ...string) []treetest.Call {
	t.Helper()
	cmd := exec.Command(args[0], append(args[1:], root)...)
	if deny != nil {
		treetest.Deny(t, cmd, deny)
	}
	calls := treetest.Select(treetest.After(treetest.TraceCmd(t, cmd), root), func(c treetest.Call) bool {
		path, _ := c.Path()
		return !strings.HasPrefix(path, "/run/fastlabel")
	})
	if len(calls) == 0 {
		t.Fatalf("no call after the open of %s", root)
	}
	return calls
}

// waysByAnswers are the kernel's answers that lead to each kind of way.
var waysByAnswers = map[string]map[int]syscall.Errno{
	"setxattrat": nil,
	"fchdir":     {unix.SYS_SETXATTRAT: unix.ENOSYS, unix.SYS_GETXATTRAT: unix.ENOSYS},
	"fd":         {unix.SYS_OPEN_TREE: unix.EPERM},
}

// TestCallsPerEntry counts the calls on many files that are all wrong, then all
// right. On few files, the controls: --exact makes two attribute calls for each
// wrong entry, and ls reads a directory so too, and asks about each file.
func TestCallsPerEntry(t *testing.T) {
	treetest.Need(t, "root", "strace", "seccomp", "setxattrat")
	const some = 5000
	many := sized(100_000, 30_000) // the latter is the fewest at which two rows of guessAfter are no hundredth
	// On a busy machine workers are held up, and who takes over begins with such a row.
	most := many*102/100 + 16*guessAfter
	bin := treetest.Command(t)
	dir := treetest.Fresh(t, "tmpfs")
	for name, n := range map[string]int{"many": many, "some": some} {
		flat(t, filepath.Join(dir, name), n)
		settle(t, filepath.Join(dir, name))
	}
	reads := func(files int) int { return (files+2)*32/readSize + 1 }
	for _, turn := range []struct {
		name, flag  string
		files       int
		most, least int // attribute calls
	}{
		{"many", "--threads=2", many, most, many}, // all wrong
		{"many", "--threads=2", many, most, many}, // all right
		{"some", "--exact", some, 3 * some, 2 * some},
	} {
		n := treetest.Tallies(below(t, nil, filepath.Join(dir, turn.name), bin, turn.flag))
		if attrs := n[treetest.ReadAttr] + n[treetest.WriteAttr] + n[treetest.ListAttr]; attrs < turn.least || attrs > turn.most {
			t.Errorf("%s: %d attribute calls for %d files, want %d to %d", turn.flag, attrs, turn.files, turn.least, turn.most)
		}
		const list = 4 // of the root's names, before the walk and after the commit
		if n[treetest.Entries] > reads(turn.files)+2+list {
			t.Errorf("%d readings of a directory that takes %d", n[treetest.Entries], reads(turn.files))
		}
		if n[treetest.Stat] > 16 || n[treetest.Open] > 16 {
			t.Errorf("%d calls of the stat kind and %d opens for one directory", n[treetest.Stat], n[treetest.Open])
		}
	}
	n := treetest.Tallies(below(t, nil, filepath.Join(dir, "some"), "ls", "-lR"))
	if n[treetest.Entries] < reads(some) || n[treetest.Stat] < some {
		t.Errorf("control: ls makes %d reads and %d calls of the stat kind", n[treetest.Entries], n[treetest.Stat])
	}
}

// TestCallsPerDirectory: a directory of one file is opened once and read with
// two calls, the second of which says that it ends, on every filesystem.
func TestCallsPerDirectory(t *testing.T) {
	treetest.Need(t, "root", "strace")
	const dirs = 300
	bin := treetest.Command(t)
	tree := treetest.Text(t, fmt.Sprintf("dir d%%03d x%d\nfile d%%03d/f x%[1]d", dirs))
	treetest.Each(t, func(t *testing.T, dir string) {
		root := filepath.Join(dir, "tree")
		treetest.Build(t, root, tree)
		settle(t, root)
		n := treetest.Tallies(below(t, nil, root, bin, "-T", "2"))
		const list = 4 // of the root's names, before the walk and after the commit
		if n[treetest.Entries] > 2*dirs+4+list || n[treetest.Open] > dirs+16 || n[treetest.Stat] > 16 {
			t.Errorf("%d directories: %d reads, %d opens, %d calls of the stat kind",
				dirs, n[treetest.Entries], n[treetest.Open], n[treetest.Stat])
		}
		if n := treetest.Tallies(below(t, nil, root, "ls", "-lR")); n[treetest.Stat] <= 16 {
			t.Errorf("control: ls makes %d calls of the stat kind", n[treetest.Stat])
		}
	})
}

// opened lists what was opened that is no directory, to be read or written; not the
// table of mounts.
func opened(calls []treetest.Call) []treetest.Call {
	return treetest.Select(calls, func(c treetest.Call) bool {
		f := c.Flags()
		if p, _ := c.Path(); p == "mountinfo" && strings.HasPrefix(c.Dir, "/proc/") {
			return false
		}
		return c.Class() == treetest.Open && c.Name != "open_tree" &&
			!strings.Contains(f, "O_DIRECTORY") && !strings.Contains(f, "O_PATH")
	})
}

// paths lists the calls that take a path of more than one name. On the fd way
// /proc/self/fd/N is not one: it leads to a descriptor, not into the tree. Nor are the refused
// places, of which statfs says on btrfs whether they may lie in it.
func paths(calls []treetest.Call) []treetest.Call {
	return treetest.Select(calls, func(c treetest.Call) bool {
		p, _ := c.Path()
		return c.Name != "statfs" && strings.Contains(strings.TrimPrefix(p, "/proc/self/fd/"), "/")
	})
}

// impatient reports whether the command did not wait a second for what it asks of
// its arguments before it walks: the answers then come in between, and say nothing
// of the walk.
func impatient(calls []treetest.Call) bool {
	return slices.ContainsFunc(calls, func(c treetest.Call) bool {
		p, _ := c.Path()
		return p == "/proc/self/mountinfo" || c.Name == "newfstatat" && filepath.IsAbs(p)
	})
}

// TestNothingElseOpened: on every way, of a tree of all kinds of entries only
// directories are opened, and no path is looked up once the root is open.
func TestNothingElseOpened(t *testing.T) {
	treetest.Need(t, "root", "strace", "seccomp", "setxattrat")
	bin := treetest.Command(t)
	treetest.Each(t, func(t *testing.T, dir string) {
		root := filepath.Join(dir, "tree")
		treetest.Build(t, root, treetest.Load(t, "mixed-kinds"))
		level := 0
		for way, deny := range waysByAnswers {
			for _, wrong := range []bool{true, false} {
				var calls []treetest.Call
				for try := 0; try == 0 || try < 5 && impatient(calls); try++ {
					if wrong {
						level++
					}
					calls = below(t, deny, root, bin, "-T", "2", "--level", fmt.Sprintf("s0:c%d", level))
				}
				for _, c := range opened(calls) {
					t.Errorf("%s: opened: %+v", way, c)
				}
				for _, c := range paths(calls) {
					t.Errorf("%s: took a path: %+v", way, c)
				}
				thread := treetest.Select(calls, func(c treetest.Call) bool {
					return strings.HasPrefix(c.Name, "lsetxattr") || strings.HasPrefix(c.Name, "lgetxattr")
				})
				proc := treetest.Select(calls, func(c treetest.Call) bool {
					p, _ := c.Path()
					return strings.HasPrefix(p, "/proc/self/fd/")
				})
				if (way == "fchdir") != (len(thread) > 0) || (way == "fd") != (len(proc) > 0) {
					t.Errorf("%s: %d calls by a thread of its own, %d through /proc", way, len(thread), len(proc))
				}
			}
		}
		calls := below(t, nil, root, "sh", "-c", `grep -rs x "$0"; true`)
		if len(opened(calls)) == 0 {
			t.Error("control: grep opens no file")
		}
		if len(paths(below(t, nil, root, "ls", "-lR"))) == 0 {
			t.Error("control: ls takes no path")
		}
	})
}

// TestStale: where a label that is read may be old, the server is asked before, of each
// entry, on all ways. The control is where it may not.
func TestStale(t *testing.T) {
	treetest.Need(t, "root", "strace")
	for way := range xattrio.Fastest() + 1 {
		for _, stale := range []bool{true, false} {
			root := grow(t, on(t, "tmpfs"), "default label="+newLabel+"\ndir .\nfile f%02d x40\ndir d%03d x100\nfile d%03d/f x100\n")
			calls := treetest.TraceCmd(t, child(t, fmt.Sprintf("stale %d %t", way, stale), root))
			read, asked := 0, 0
			for _, c := range treetest.After(calls, root) {
				switch args := fmt.Sprint(c.Args); {
				case c.Name == "getxattrat", c.Class() == treetest.ReadAttr && strings.Contains(args, xattrio.Attribute):
					read++
				case c.Name == "statx" && strings.Contains(args, "FORCE_SYNC"):
					asked++
				}
			}
			if read < 241 || stale && asked < read || !stale && asked > 8 {
				t.Errorf("%v, stale: %t: %d labels were read, and the server was asked %d times", way, stale, read, asked)
			}
		}
	}
}

// sized gives whole, or small in the short form.
func sized(whole, small int) int {
	if testing.Short() {
		return small
	}
	return whole
}

// TestAllocations: what Tree allocates does not depend on how many files there
// are, on any way.
func TestAllocations(t *testing.T) {
	treetest.Need(t, "root", "setxattrat")
	dir := treetest.Fresh(t, "tmpfs")
	few, many := filepath.Join(dir, "few"), filepath.Join(dir, "many")
	least, more := sized(10_000, 2_000), sized(50_000, 10_000)
	most := int64(more / 20) // a walk that takes long makes some by the clock: 125 in a minute
	flat(t, few, least)
	flat(t, many, least+more)
	allocated := func(root, label string, m capabilities, o Options) int64 {
		settle(t, root)
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := tree(t.Context(), root, label, o, as(m))
		runtime.ReadMemStats(&after)
		if err != nil || !r.Complete {
			t.Fatalf("%+v, %v", r, err)
		}
		return int64(after.Mallocs - before.Mallocs)
	}
	n := 0
	for name, m := range engines() {
		n++ // another label: everything is wrong
		for i, state := range []string{"wrong", "right"} {
			label := fmt.Sprintf("system_u:object_r:container_file_t:s0:c%d", n)
			o := Options{Workers: 1}
			if d := allocated(many, label, m, o) - allocated(few, label, m, o); d >= most {
				t.Errorf("%s, all %s: %d more allocations for %d more files", name, state, d, more)
			}
			o.Progress, o.Throttle = new(Progress), func(context.Context, int) error { return nil }
			if d := allocated(many, label, m, o) - allocated(few, label, m, o); d >= most {
				t.Errorf("%s: held back: %d more allocations for %d more files", name, d, more)
			}
			if i == 0 || m.kernel.Way != sys.ByName || !m.clones {
				continue
			}
			// A path for each change is what Trace.Change costs: the control.
			label += ",c999"
			o.Trace = &Trace{Change: func(string, string, string) {}}
			if d := allocated(many, label, m, o) - allocated(few, label, m, o); d < int64(more) {
				t.Errorf("control: %s: only %d more allocations with Trace.Change", name, d)
			}
		}
	}
}
