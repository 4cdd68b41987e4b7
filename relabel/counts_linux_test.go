// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/commit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestSameCounts: how many work on it changes no count, and the oracle counts
// the same.
func TestSameCounts(t *testing.T) {
	treetest.Need(t, "root")
	half := treetest.Load(t, "half")
	treetest.Each(t, func(t *testing.T, dir string) {
		oracle := mkdir(t, dir, "oracle")
		treetest.Build(t, oracle, half)
		const label = "system_u:object_r:container_file_t:s0"
		want := treetest.Label(t, oracle, label)
		if want.Right == 0 || want.Written == 0 {
			t.Fatalf("the tree proves nothing: %+v", want)
		}
		for _, threads := range []int{1, 2, 3, 16} {
			for _, dry := range []bool{true, false} {
				root := mkdir(t, dir, fmt.Sprintf("%d-%t", threads, dry))
				treetest.Build(t, root, half)
				r, err := tree(t.Context(), root, label, Options{Workers: threads, Exact: true}, inner{dry: dry})
				adds(t, r)
				if err != nil || r.Complete == dry || r.Seen != want.Seen || r.Written != want.Written || r.Right != want.Right {
					t.Errorf("%d workers, dry %t: %+v, %v; the oracle: %+v", threads, dry, r, err, want)
				}
			}
		}
	})
}

// TestSecondRun: what is right is not written again, for a write moves ctime.
func TestSecondRun(t *testing.T) {
	treetest.Need(t, "root")
	treetest.Each(t, func(t *testing.T, dir string) {
		root := grow(t, dir, plain)
		before := treetest.Snapshot(t, root+"/...")
		if r, err := Tree(t.Context(), root, newLabel, nil); err != nil || r.Written != 46 {
			t.Fatalf("%+v, %v", r, err)
		}
		first := treetest.Snapshot(t, root+"/...")
		for p, it := range first {
			if it.Ctime == before[p].Ctime && it.Label == before[p].Label {
				t.Errorf("the first run did nothing to %s", p)
			}
		}
		for _, o := range []Options{{}, {Exact: true}, {Workers: 1}, {Skip: SkipTop}} {
			r, err := Tree(t.Context(), root, newLabel, &o)
			adds(t, r)
			if err != nil || !r.Complete || r.Written != 0 || r.Right != r.Seen {
				t.Errorf("%+v, %v", r, err)
			}
			if d := treetest.Diff(first, treetest.Snapshot(t, root+"/...")); len(d) > 0 {
				t.Errorf("%+v touched:\n%s", o, lines(d))
			}
		}
	})
}

func TestDryRun(t *testing.T) {
	treetest.Need(t, "root")
	treetest.Each(t, func(t *testing.T, dir string) {
		root := grow(t, dir, plain)
		treetest.Set(t, root, "f03", newLabel)
		treetest.Set(t, root, "d", newLabel)
		before := treetest.Snapshot(t, root+"/...")
		changes := map[string]string{}
		r, err := Verify(t.Context(), root, newLabel, &Options{Trace: &Trace{Change: func(path, from, _ string) { changes[path] = from }}})
		adds(t, r)
		if err != nil || r.Complete || r.Written != 44 || r.Right != 2 || len(changes) != 44 {
			t.Errorf("%+v, %v, %d changes", r, err, len(changes))
		}
		for p, from := range changes {
			if from != oldLabel {
				t.Errorf("%s is said to have %q", p, from)
			}
		}
		if d := treetest.Diff(before, treetest.Snapshot(t, root+"/...")); len(d) > 0 {
			t.Errorf("a dry run touched:\n%s", lines(d))
		}
	})
}

// TestGuess: a long row of wrong labels with right ones among them. None may
// be missed, and each counts once.
func TestGuess(t *testing.T) {
	const dirs, files, every = 5, 1000, 97
	root := on(t, "tmpfs")
	text := "default label=" + oldLabel + "\ndir .\n"
	for d := range dirs {
		text += fmt.Sprintf("dir d%d\nfile d%d/f%%04d x%d\n", d, d, files)
	}
	root = grow(t, root, text)
	strays := int64(0)
	for d := range dirs {
		for i := 0; i < files; i += every {
			treetest.Set(t, root, fmt.Sprintf("d%d/f%04d", d, i), newLabel)
			strays++
		}
	}
	for _, exact := range []bool{true, false} {
		r, err := tree(t.Context(), root, newLabel, Options{Exact: exact}, inner{dry: exact})
		adds(t, r)
		if err != nil || r.Seen != 1+dirs+dirs*files || r.Written+r.Right != r.Seen {
			t.Errorf("%+v, %v", r, err)
		}
		if exact && r.Right != strays {
			t.Errorf("%d are right of %d", r.Right, strays)
		}
	}
	if n := len(bearing(t, root, newLabel)); n != 1+dirs+dirs*files {
		t.Errorf("%d entries are labelled", n)
	}
}

// TestOrderOfCalls: the root's label is the last to be written, and where the filesystem does
// not keep that order, or it is asked for, the last to come to the disk. With --sync so is a
// root that is a file, and a small tree in which everything was right before.
func TestOrderOfCalls(t *testing.T) {
	treetest.Need(t, "root", "strace", "seccomp")
	deny := func(e syscall.Errno) map[int]syscall.Errno { return map[int]syscall.Errno{unix.SYS_IOCTL: e} }
	const (
		keeps  = "[claim root entries root]"
		waits  = "[claim root fsync entries syncfs root fsync]"
		synced = "[claim root entries syncfs root fsync fsync]"
	)
	for _, c := range []struct {
		fs, flag string
		deny     map[int]syscall.Errno
		want     string
	}{
		{"ext4", "-q", nil, keeps},
		{"ext4", "--sync", nil, synced},
		{"ext4", "-q", deny(unix.EPERM), keeps},  // sysfs is asked
		{"ext4", "-q", deny(unix.ENODEV), waits}, // without a journal
		{"xfs", "-q", nil, keeps},
		{"xfs", "--sync", nil, synced},
		{"tmpfs", "-q", nil, keeps},
		{"btrfs", "-q", nil, "[claim root fsync entries transaction root]"},
		{"btrfs", "-q", deny(unix.EPERM), "[claim root fsync entries syncfs root]"},
		{"btrfs", "--sync", nil, "[claim root fsync entries syncfs root fsync fsync]"},
	} {
		root := grow(t, on(t, c.fs), plain)
		marks, entries := marked(t, root, c.deny, c.flag)
		if have := fmt.Sprint(marks); have != c.want || entries != 45 {
			t.Errorf("%s %s: %s, with %d entries", c.fs, c.flag, have, entries)
		}
		if c.deny != nil {
			continue // what follows goes by the flag and the filesystem
		}
		sync := c.flag == "--sync"
		if marks, _ := marked(t, root, nil, c.flag); slices.Contains(marks, "syncfs") != sync {
			t.Errorf("%s %s, all right: %s", c.fs, c.flag, marks)
		}
		file := filepath.Join(root, "f00")
		treetest.Set(t, root, "f00", oldLabel)
		if marks, _ := marked(t, file, nil, c.flag); !slices.Contains(marks, "entries") || slices.Contains(marks, "syncfs") != (sync && c.fs != "btrfs") || slices.Contains(marks, "transaction") != (sync && c.fs == "btrfs") {
			t.Errorf("%s %s, a file: %s", c.fs, c.flag, marks)
		}
	}
}

// TestOrderOfLayers: on overlayfs the order is that of the upper layer, and where that cannot
// be found the disk is waited for.
func TestOrderOfLayers(t *testing.T) {
	treetest.Need(t, "root", "strace", "overlay")
	for _, c := range []struct{ fs, does, want string }{
		{"ext4", "", "[claim root entries root]"},
		{"tmpfs", "", "[claim root entries root]"},
		{"btrfs", "", "[claim root fsync entries syncfs root]"}, // overlayfs knows no transactions
		{"ext4", "moves", "[claim root fsync entries syncfs root fsync]"},
		{"ext4", "is replaced", "[claim root fsync entries syncfs root fsync]"},
	} {
		dir := on(t, c.fs)
		for _, name := range []string{"lower", "upper", "work", "all"} {
			mkdir(t, dir, name)
		}
		upper := filepath.Join(dir, "upper")
		options := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s,workdir=%[1]s/work", dir, upper)
		mounted(t, "overlay", filepath.Join(dir, "all"), options)
		root := grow(t, filepath.Join(dir, "all"), plain)
		if c.does != "" {
			treetest.Must(t, os.Rename(upper, upper+"2"))
		}
		if c.does == "is replaced" {
			mkdir(t, upper)
			bind(t, on(t, "tmpfs"), upper)
		}
		marks, entries := marked(t, root, nil, "-q")
		if have := fmt.Sprint(marks); have != c.want || entries != 45 {
			t.Errorf("on %s, whose upper layer %s: %s, with %d entries", c.fs, c.does, have, entries)
		}
	}
}

// marked traces the command on root, and gives what it wrote and waited for, the root's own
// label apart, with entries that follow one another as one; and their number.
func marked(t *testing.T, root string, deny map[int]syscall.Errno, flag string) (marks []string, entries int) {
	t.Helper()
	cmd := exec.Command(treetest.Command(t), flag, "--label", newLabel, root)
	if deny != nil {
		treetest.Deny(t, cmd, deny)
	}
	calls, out, err := treetest.TraceCmd(t, cmd)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range treetest.After(calls, root) {
		switch {
		case !c.OK():
		case c.Name == "fsetxattr" && strings.Contains(c.Args[1], commit.ClaimName):
			marks = append(marks, "claim")
		case c.Class() == treetest.WriteAttr && c.Name == "fsetxattr" && ownRoot(c.Dir, root):
			marks = append(marks, "root")
		case c.Class() == treetest.WriteAttr:
			if entries++; len(marks) == 0 || marks[len(marks)-1] != "entries" {
				marks = append(marks, "entries")
			}
		case c.Name == "syncfs" || c.Name == "fsync":
			marks = append(marks, c.Name)
		case c.Name == "ioctl" && strings.Contains(c.Args[1], "BTRFS_IOC_WAIT_SYNC"):
			marks = append(marks, "transaction")
		}
	}
	return marks, entries
}

// ownRoot tells the root in a trace, where it stands in a clone of its mount:
// the kernel then prints its path from that mount's top.
func ownRoot(dir, root string) bool { return dir == root || dir == "/" || dir == filepath.Base(root) }

// longLabel is the longest that a policy may know: 2500 bytes.
func longLabel() string {
	label := newLabel
	for c := 4; c < 1024; c += 2 {
		label += fmt.Sprint(",c", c)
	}
	return label
}

// TestLongLabel: an entry with the longest attribute there is gets its label,
// or with the longest that SELinux takes.
func TestLongLabel(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), plain)
	long := string(make([]byte, 60000)) + "x"
	if treetest.Policed() {
		long = longLabel()
	}
	for _, p := range []string{"f03", "d", "."} {
		treetest.Set(t, root, p, long)
	}
	r, err := Tree(t.Context(), root, newLabel, nil)
	adds(t, r)
	if err != nil || !r.Complete || len(bearing(t, root, newLabel)) != 46 {
		t.Errorf("%+v, %v", r, err)
	}
}
