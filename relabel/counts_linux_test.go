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
// be found the disk is waited for. What lies in the lower layer gets its label too.
func TestOrderOfLayers(t *testing.T) {
	treetest.Need(t, "root", "strace", "overlay")
	for _, c := range []struct{ fs, does, want string }{
		{"ext4", "", "[claim root entries root]"},
		{"tmpfs", "", "[claim root entries root]"},
		{"btrfs", "", "[claim root fsync entries syncfs root]"}, // overlayfs knows no transactions
		{"ext4", "is empty", "[claim root fsync entries syncfs root fsync]"},
		{"ext4", "moves", "[claim root fsync entries syncfs root fsync]"},
		{"ext4", "is replaced", "[claim root fsync entries syncfs root fsync]"},
	} {
		dir := on(t, c.fs)
		for _, name := range []string{"lower", "upper", "work", "all"} {
			mkdir(t, dir, name)
		}
		upper, layer := filepath.Join(dir, "upper"), "upper"
		if c.does == "is empty" {
			layer = "lower"
		}
		grow(t, filepath.Join(dir, layer), plain)
		root := filepath.Join(dir, "all/root")
		options := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s,workdir=%[1]s/work", dir, upper)
		mounted(t, "overlay", filepath.Join(dir, "all"), options)
		if c.does != "" {
			treetest.Must(t, os.Rename(upper, upper+"2"))
		}
		if c.does == "is replaced" {
			mkdir(t, upper)
			bind(t, on(t, "tmpfs"), upper)
		}
		marks, entries := marked(t, root, nil, "-q")
		has := len(bearing(t, root, newLabel))
		if have := fmt.Sprint(marks); have != c.want || entries != 45 || has != 46 {
			t.Errorf("on %s, whose upper layer %s: %s, with %d entries; %d have the label", c.fs, c.does, have, entries, has)
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
	for _, c := range treetest.After(treetest.TraceCmd(t, cmd), root) {
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
