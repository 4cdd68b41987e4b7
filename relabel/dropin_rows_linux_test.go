// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/opencontainers/selinux/go-selinux"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

const small = "default label=" + oldLabel + "\ndir .\nfile f\ndir d\nfile d/f\nlink l d\nlink dangling nowhere\n"

// halfway has a mount in the middle of what is read in the order of names. So
// many entries fail there that go-selinux cannot miss it.
func halfway(kind string) string {
	return "default label=" + oldLabel + "\ndir .\nfile f%03d x200\ndir m\nmount m " + kind + "\nfile m/f%03d x300\nfile z%04d x2000\n"
}

// recursive labels what lies at that place in the tree.
func recursive(at, label string) func(library, string) error {
	return func(l library, root string) error { return l.chcon(root+at, label, true) }
}

func alone(at, label string) func(library, string) error {
	return func(l library, root string) error { return l.chcon(root+at, label, false) }
}

func relabelled(at, label string, shared bool) func(library, string) error {
	return func(l library, root string) error { return l.relabel(root+at, label, shared) }
}

// byThread has do called by a thread with a mount namespace of its own, in which the
// tree lies beneath another filesystem with a file f.
func byThread(do func(library, string) error) func(library, string) error {
	return func(l library, root string) error {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			if sys.MainThread() {
				defer runtime.UnlockOSThread() // it could not end
				done <- byThread(do)(l, root)
				return
			}
			err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
			if err == nil {
				err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
			}
			if err == nil {
				err = unix.Mount("tmpfs", root, "tmpfs", 0, "")
			}
			if err == nil {
				err = os.WriteFile(root+"/f", nil, 0o600)
			}
			if err != nil {
				done <- fmt.Errorf("prepare: %w", err)
				return
			}
			done <- do(l, root)
		}()
		return <-done
	}
}

func on1(t *testing.T, _ string)  { turn(t, true) }
func off1(t *testing.T, _ string) { turn(t, false) }

// home makes a directory of the tree the caller's home.
func home(at string) func(*testing.T, string) {
	return func(t *testing.T, root string) { t.Setenv("HOME", root+at) }
}

func immutableAt(at ...string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		for _, p := range at {
			immutable(t, root+p, true)
		}
	}
}

// never are the directories that may not be relabelled, as FIELD.md has them.
var never = strings.Fields("/ /bin /boot /dev /etc /etc/passwd /etc/pki /etc/shadow /home /lib /lib64 /media /opt " +
	"/proc /root /run /sbin /srv /sys /tmp /usr /var /var/lib /var/log")

const (
	whole     = "nil; . d d/f dangling f l"
	refusedIt = "refused; "
	atS0      = "system_u:object_r:container_file_t:s0"
	unsorted  = "system_u:object_r:container_file_t:s0:c2,c1"
)

const asStrings = "a directory is told by device and inode; go-selinux compares strings"

func sudoer(at string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		passwd := root + ".passwd"
		line := "root:x:0:0::/root:/bin/sh\nsomebody:x:4321:4321::" + root + at + ":/bin/sh\n"
		treetest.Must(t, os.WriteFile(passwd, []byte(line), 0o644))
		bind(t, passwd, "/etc/passwd")
		t.Setenv("SUDO_USER", "somebody")
	}
}

const devicesOf = "a node of devtmpfs is the whole machine's: it would get the label of one container"

// devices has a directory of devtmpfs on a directory of the tree, and the test's in it: there is
// one devtmpfs, in which others make devices too.
func devices(at string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		all := mkdir(t, root+".dev")
		mounted(t, "devtmpfs", all, "")
		own, err := os.MkdirTemp(all, "fastlabel-")
		treetest.Must(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(own) }) // before it is unmounted
		dir := mkdir(t, own, "fastlabel-test")
		treetest.Must(t, unix.Mknod(dir+"/null", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
		treetest.Label(t, dir, oldLabel)
		bind(t, own, root+"/"+at)
	}
}

// contracts is the table.
func contracts() []contract {
	return []contract{
		// Arguments.
		{name: "no path", do: func(l library, _ string) error { return l.chcon("", newLabel, true) }, want: "empty path; "},
		{name: "no label", do: recursive("", ""), want: "nil; "},
		{name: "no label, refused", do: func(l library, _ string) error { return l.chcon("/etc", "", true) }, want: "nil; "},
		{name: "NUL in the path", do: recursive("/f\x00", newLabel), want: `EINVAL f\x00; `},
		{name: "three fields", do: alone("/f", "u:r:t"), want: "nil; f=u:r:t", policed: "EINVAL f; "},
		{
			name: "no context", do: alone("/f", "foobar"), want: "invalid label; ", peer: "nil; f=foobar",
			policed: "invalid label; ", policedPeer: "EINVAL f; ",
			why: "a kernel with SELinux refuses it; what cannot be put in canonical form cannot be compared",
		},
		{
			name: "category out of range", do: recursive("", "u:r:t:s0:c1024"), want: "invalid label; ", peer: "nil; .*f=u:r:t:s0:c1024.*",
			policed: "invalid label; ", policedPeer: "EINVAL .; ",
			why: "no policy in use declares it: said before the first change, not after it by the kernel",
		},
		{
			name: "unsorted categories", do: alone("/f", unsorted), want: "nil; f", peer: "nil; f=" + regexp.QuoteMeta(unsorted), policed: "nil; f",
			why: "the kernel sorts them, so what is stored and read back would never equal what was asked for",
		},
		{
			name: "trailing NUL", do: alone("/f", newLabel+"\x00"), want: "nil; f", peer: `nil; f=.*\\x00`, policed: "nil; f",
			why: "libselinux stores one, we store none; readers drop it",
		},

		// One entry.
		{name: "gone", do: alone("/none", newLabel), want: "nil; "},
		{name: "beneath a file", do: alone("/f/f", newLabel), want: "ENOTDIR f/f; "},
		{name: "file alone", do: alone("/f", newLabel), want: "nil; f"},
		{name: "directory alone", do: alone("/d", newLabel), want: "nil; d"},
		{name: "link alone", do: alone("/l", newLabel), want: "nil; l"},
		{name: "immutable alone", prepare: immutableAt("/f"), do: alone("/f", newLabel), want: "write EPERM f; "},
		{name: "immutable and right", prepare: immutableAt("/f"), do: alone("/f", oldLabel), want: "nil; "},
		{
			name: "right already", do: alone("/f", oldLabel), want: "nil; ", peer: "nil; f touched",
			why: "a right label is not written again: that moves ctime, and backups copy the file",
		},
		{
			name: "a thread's own mount", do: byThread(alone("/f", newLabel)), want: "refused; ", peer: "nil; ",
			why: "the work is done by other threads, to which the path leads elsewhere, as it does to those of go-selinux beneath a root",
		},
		{
			name: "a thread's own mount, recursive", do: byThread(recursive("", newLabel)), want: "refused; ", peer: "nil; .*f.*",
			why: "so is a tree, which go-selinux labels outside of the mount",
		},
		{name: "no labels alone", tree: "dir m\nmount m ramfs\n", do: alone("/m", newLabel), want: "write ENOTSUP m; "},

		// A tree.
		{name: "tree", do: recursive("", newLabel), want: whole},
		{name: "no root", do: recursive("/none", newLabel), want: "ENOENT none; "},
		{name: "file", do: recursive("/f", newLabel), want: "nil; f"},
		{name: "link", do: recursive("/l", newLabel), want: "nil; l"},
		{name: "link and slash", do: recursive("/l/", newLabel), want: "nil; l"},
		{
			name: "link and dot", do: recursive("/l/.", newLabel), want: "nil; d d/f", peer: "nil; d/f",
			why: "entries are told by descriptors, not by the length of their paths: d/f was taken for the root",
		},
		{
			name: "link and slashes", do: recursive("/l//", newLabel), want: "nil; l", peer: "nil; d d/f",
			why: "one slash or two is the same path",
		},
		{
			name: "every kind", tree: "default label=" + oldLabel + "\ndir d\nfifo d/fifo\nsocket d/socket\nchar d/char 1:3\nblock d/block 7:99\n" +
				"link d/link nowhere\nfile f\nhardlink d/hard f\n", do: recursive("/d", newLabel),
			want: "nil; d d/block d/char d/fifo d/hard d/link d/socket f",
		},
		{
			name: "every kind alone", tree: "default label=" + oldLabel + "\ndir .\nfifo fifo\nsocket socket\nchar char 1:3\nblock block 7:99\n",
			do: func(l library, root string) (err error) {
				for _, kind := range []string{"fifo", "socket", "char", "block"} { // none may be opened: a FIFO hangs
					err = errors.Join(err, l.chcon(root+"/"+kind, newLabel, true))
				}
				return err
			}, want: "nil; block char fifo socket",
		},
		{
			name: "nested mount", tree: "default label=" + oldLabel + "\ndir .\ndir m\nmount m tmpfs\nfile m/in\n",
			do: recursive("", newLabel), want: "nil; . m m/in",
		},
		{
			name: "strays", prepare: func(t *testing.T, root string) { treetest.Set(t, root, "d/f", newLabel) },
			do: recursive("", oldLabel), want: "nil; d/f=" + oldLabel,
		},
		{name: "right tree", do: recursive("", oldLabel), want: "nil; "},
		{
			name: "right tree, other spelling", prepare: func(t *testing.T, root string) { treetest.Label(t, root, newLabel) },
			do: recursive("", unsorted), want: "nil; ", peer: "nil; .=.*", policed: "nil; ",
			why: "compared in canonical form, so a tree that is right is seen to be right",
		},
		{
			name: "immutable root", tree: "default label=" + oldLabel + "\nfile f\n", prepare: immutableAt("/f"),
			do: recursive("/f", newLabel), want: "write EPERM f; ",
		},
		{name: "no labels at all", tree: "dir m\nmount m ramfs\n", do: recursive("/m", newLabel), want: "write ENOTSUP m; "},
		{
			name: "no labels but in a mount", tree: "dir m\nmount m ramfs\ndir m/m\nmount m/m tmpfs\nfile m/m/in\n",
			do: recursive("/m", newLabel), want: "write ENOTSUP m; ", peer: "write ENOTSUP m; m/m m/m/in",
			why: "a root that has no labels is not walked; go-selinux finds that out last if nothing else lies in it",
		},
		{
			name: "read-only", tree: "default label=" + oldLabel + "\ndir m\nmount m tmpfs ro\nfile m/f\nfile m/g\n",
			do: recursive("/m", newLabel), want: "write EROFS m/f, write EROFS m/g; ", peer: "write EROFS m(/[fg])?; ",
			why: "each failure is named; which of them go-selinux returns is chance",
		},
		{
			name: "no labels in a mount", tree: halfway("ramfs"),
			do: recursive("", newLabel), want: "nil; 2201 entries, the root too", peer: `write ENOTSUP m.*; 2\d\d entries`,
			why: "a mount that has no labels is skipped; go-selinux stops half way, and its callers ignore ENOTSUP",
		},
		{
			name: "read-only mount", tree: halfway("tmpfs ro"),
			do: recursive("", newLabel), want: "nil; 2201 entries, the root too", peer: `write EROFS m.*; 2\d\d entries`,
			why: "nor is a read-only mount a reason to leave the rest",
		},
		{
			name: "longer than a path may be", tree: "default label=" + oldLabel + "\ndir .\ndeep p x40 120\n", do: recursive("", newLabel),
			want: "nil; 43 entries, the root too", peer: "(write )?ENAMETOOLONG .*; 34 entries",
			why: "the walk holds directories and names, not paths",
		},
		{name: "a dot within", do: func(l library, root string) error {
			return l.chcon(filepath.Dir(root)+"/./"+filepath.Base(root), newLabel, true)
		}, want: whole, peer: "nil; d/f dangling l", why: "go-selinux takes each path as long as the root's for the root: f and d stay as they were, and so does the root"},
		{
			name: "working directory", prepare: func(t *testing.T, root string) { t.Chdir(root) },
			do:   func(l library, _ string) error { return l.chcon(".", newLabel, true) },
			want: whole, peer: "nil; d/f dangling l", why: "so it does here, where each name of one letter is as long as the dot",
		},

		// What is refused.
		{name: "the system", do: func(l library, _ string) (err error) {
			for _, p := range never {
				if _, is := os.Lstat(p); is != nil {
					continue
				}
				for _, recurse := range []bool{false, true} { // the lesser harm first
					if err = l.chcon(p, newLabel, recurse); told("", err) != "refused" {
						return fmt.Errorf("%s: %v", p, err)
					}
				}
			}
			return err
		}, want: refusedIt},
		{name: "home", prepare: home("/d"), do: recursive("/d", newLabel), want: refusedIt},
		{name: "beneath home", prepare: home("/d"), do: recursive("/d/f", newLabel), want: "nil; d/f"},
		{name: "home and slashes", prepare: home("/d"), do: recursive("/d//", newLabel), want: refusedIt, peer: "nil; d d/f", why: asStrings},
		{name: "home and dots", prepare: home("/d"), do: recursive("/d/../d", newLabel), want: refusedIt, peer: "nil; d d/f", why: asStrings},
		{name: "home by a link", prepare: home("/l"), do: recursive("/d", newLabel), want: refusedIt, peer: "nil; d d/f", why: asStrings},
		{
			name: "home by a mount", tree: "default label=" + oldLabel + "\ndir .\ndir d\nfile d/f\ndir b\nmount b bind d\n", prepare: home("/d"),
			do: recursive("/b", newLabel), want: refusedIt, peer: "nil; b b/f d d/f", why: asStrings,
		},
		{
			name: "what holds home", prepare: home("/d"), do: recursive("", newLabel), want: refusedIt, peer: whole,
			why: "who may not relabel a home may not relabel it with what is above it either",
		},
		{
			name: "a home that is not there", prepare: home("/none"), do: recursive("/none", newLabel), want: "ENOENT none; ", peer: refusedIt,
			why: "known by what it is, which is nothing",
		},
		{name: "home of who called sudo", prepare: sudoer("/d"), do: recursive("/d", newLabel), want: refusedIt},

		{
			name: "a device of the machine", tree: "default label=" + oldLabel + "\ndir m\n", prepare: devices("m"), do: alone("/m/fastlabel-test/null", newLabel),
			want: refusedIt, peer: "nil; m/fastlabel-test/null", why: devicesOf,
		},
		{
			name: "a directory of devices", tree: "default label=" + oldLabel + "\ndir m\n", prepare: devices("m"), do: recursive("/m/fastlabel-test", newLabel),
			want: refusedIt, peer: "nil; m/fastlabel-test m/fastlabel-test/null", why: devicesOf,
		},

		// Relabel.
		{name: "off", prepare: off1, do: relabelled("", newLabel, false), want: "nil; "},
		{name: "off, shared, no label", prepare: off1, do: relabelled("", "foobar", true), want: "nil; "},
		{name: "on, no path", prepare: on1, do: func(l library, _ string) error { return l.relabel("", newLabel, true) }, want: "empty path; "},
		{name: "on, no path, two fields", prepare: on1, do: func(l library, _ string) error { return l.relabel("", "a:b", true) }, want: "invalid label; "},
		{name: "on", prepare: on1, do: relabelled("", newLabel, false), want: whole},
		{name: "on, refused", prepare: on1, do: func(l library, _ string) error { return l.relabel("/usr/", newLabel, false) }, want: refusedIt},
		{name: "shared", prepare: on1, do: relabelled("/d", newLabel, true), want: "nil; d=" + atS0 + " d/f=" + atS0},
		{name: "shared range", prepare: on1, do: relabelled("/d/f", "u:r:t:s0-s15:c0.c1023", true), want: "nil; d/f=u:r:t:s0"},
		{name: "shared, three fields", prepare: on1, do: relabelled("/f", "u:r:t", true), want: "nil; f=u:r:t:s0"},
		{name: "shared, two fields", prepare: on1, do: relabelled("", "u:r", true), want: "invalid label; "},
		{
			name: "shared, trailing NUL", prepare: on1, do: relabelled("/f", "u:r:t\x00", true), want: "nil; f=u:r:t:s0", peer: `nil; f=u:r:t\\x00:s0`,
			policed: "nil; f=u:r:t:s0", policedPeer: "EINVAL f; ",
			why: "a NUL ends the label, wherever the level goes",
		},
		{name: "shared, level by name", prepare: on1, do: relabelled("/f", "u:r:t:SystemHigh", true), want: "nil; f=u:r:t:s0"},
		{
			name: "turned off", prepare: func(t *testing.T, _ string) { turn(t, true); selinux.SetDisabled() },
			do: relabelled("", newLabel, false), want: "nil; ",
		},
	}
}
