// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
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
	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// The tests in this file hold promises that no other test held when a mutant
// first broke them. The entries of test/mutants name them.

// TestDirectoriesFirst: a directory has its label before its entries are
// read, by each way. Without SELinux nothing inherits it: the order is all that
// can be seen of it here.
func TestDirectoriesFirst(t *testing.T) {
	for engine, m := range engines() {
		root := grow(t, on(t, "tmpfs"), plain)
		told := map[string]bool{root: true} // the root comes last
		r, err := tree(t.Context(), root, newLabel, Options{Trace: &Trace{Change: func(path, _, _ string) {
			if told[path] = true; path != root && !told[filepath.Dir(path)] {
				t.Errorf("%s: %s is labelled before its directory", engine, path)
			}
		}}}, as(m))
		if err != nil || len(told) != 46 {
			t.Errorf("%s: %d were told: %+v, %v", engine, len(told), r, err)
		}
	}
}

// TestGuess: what is right is soon found to be so, whatever came before it; what is wrong among
// it is not missed, and each counts once.
func TestGuess(t *testing.T) {
	const some = 1000
	text := "default label=" + oldLabel + "\ndir .\ndir m\nfile m/f%03d x200\ndefault label=" + newLabel + "\n"
	for _, d := range []string{"a", "z"} { // one of them comes after m
		text += fmt.Sprintf("dir %s\nfile %[1]s/f%%04d x%d\nfile %[1]s/stray%%02d x40 label=%[3]s\n", d, some, oldLabel)
	}
	for _, c := range []struct {
		o    Options
		root string
		most int64 // right ones that are written again
	}{
		{Options{Workers: 1}, oldLabel, 3 * guessCheck}, // m, and the strays of a and z
		{Options{Workers: 1, Exact: true}, oldLabel, 0},
		{Options{Workers: 1}, newLabel, 0},
	} {
		root := grow(t, on(t, "tmpfs"), text)
		treetest.Set(t, root, ".", c.root)
		wrong := int64(len(bearing(t, root, oldLabel)))
		r, err := Tree(t.Context(), root, newLabel, &c.o)
		adds(t, r)
		all := len(treetest.Read(t, root))
		if again := r.Written - wrong; err != nil || r.Seen != int64(all) || again < 0 || again > c.most || len(bearing(t, root, newLabel)) != all {
			t.Errorf("%+v: %d were written again: %+v, %v", c, again, r, err)
		}
	}
}

// TestGuessRefused: entries that cannot be written, met while the walk writes
// unread. The right ones are right, the others have failed, and the root is not
// committed for a moment: TestFailureSeals sees only how it ends.
func TestGuessRefused(t *testing.T) {
	root := grow(t, on(t, "ext4"), "default label="+oldLabel+"\ndir .\nfile f%03d x800\n")
	var wrong, told []string
	for i := range 20 {
		// In the order of inodes each comes more than guessAfter behind the last.
		path := filepath.Join(root, fmt.Sprintf("f%03d", i*40))
		if i%2 == 0 {
			treetest.Set(t, root, filepath.Base(path), newLabel)
		} else {
			wrong = append(wrong, path)
		}
		immutable(t, path, true)
	}
	r, err := Tree(t.Context(), root, newLabel, &Options{
		Workers: 1,
		Trace: &Trace{Failure: func(err error) { told = append(told, pathOf(err)) }, Change: func(path, _, _ string) {
			if path == root {
				t.Error("the root was committed")
			}
		}},
	})
	adds(t, r)
	slices.Sort(told)
	if !errors.Is(err, syscall.EPERM) || r.Complete || r.Right != 10 || r.Failed != 10 || !slices.Equal(told, wrong) {
		t.Errorf("%+v, %v, told %q", r, err, told)
	}
}

// TestSyncsForOthers: a run that was killed after it had labelled everything, on several
// mounts, has left the seal. The next one writes nothing but the root, and all the same waits
// for the disks of other filesystems than the root's.
func TestSyncsForOthers(t *testing.T) {
	treetest.Need(t, "root", "strace")
	root := grow(t, on(t, "ext4"), "default label="+newLabel+"\ndir .\nfile f\ndir m\nmount m tmpfs\nfile m/f\ndir x\ndir b\nfile one\ndir same\n")
	for dir, from := range map[string]string{"x": on(t, "xfs"), "b": on(t, "btrfs"), "one": filepath.Join(on(t, "xfs"), "one"), "same": on(t, "ext4")} {
		if dir == "one" {
			writeFile(t, from)
		}
		bind(t, from, filepath.Join(root, dir))
		treetest.Set(t, root, dir, newLabel)
	}
	treetest.Set(t, root, "m", newLabel)
	seal := secctx.Seals("", newLabel)[0]
	treetest.Set(t, root, ".", seal)
	treetest.Must(t, unix.Setxattr(root, commit.ClaimName, []byte("version=2 want="+newLabel+" seal="+seal+" former="), 0))
	marks, _ := marked(t, root, nil, "-q")
	slices.Sort(marks[:max(0, len(marks)-1)])
	if have := fmt.Sprint(marks); have != "[syncfs syncfs transaction root]" {
		t.Error(have)
	}
}

// TestAnswers: what a run makes of the kernel's answer to one call.
func TestAnswers(t *testing.T) {
	type answers = map[int]syscall.Errno
	const many = "default label=" + oldLabel + "\ndir .\nfile f%04d x2000\n"
	files := func(e syscall.Errno) answers { // directories are open: fsetxattr
		return answers{unix.SYS_SETXATTRAT: unix.ENOSYS, unix.SYS_LSETXATTR: e, unix.SYS_SETXATTR: e}
	}
	for _, c := range []struct {
		name, at, want string
		deny           answers
		least, most    int // failures told
	}{
		{"unreadable root", "", "getdents64", answers{unix.SYS_GETDENTS64: unix.EIO}, 1, 1},
		{"dying disk", "", "errors in a row", files(unix.EIO), sickAfter, 20 * sickAfter},
		{"unknown to the policy", "", "the kernel refuses the label", files(unix.EINVAL), 1, 1999},
		{"unsynced", "", "syncfs", answers{unix.SYS_SYNCFS: unix.EIO}, 0, 0},
		{"unsynced stray", "", "syncfs", answers{unix.SYS_SYNCFS: unix.EIO}, 0, 0}, // beneath a root that is right
		{"root gone", "f0007", "no such file", answers{unix.SYS_SETXATTR: unix.ENOENT}, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := grow(t, on(t, "tmpfs"), many)
			what := "label"
			if strings.HasPrefix(c.name, "unsynced") {
				what = "sync"
			}
			if c.name == "unsynced stray" {
				treetest.Set(t, root, ".", newLabel)
			}
			cmd := child(t, what, filepath.Join(root, c.at))
			treetest.Deny(t, cmd, c.deny)
			text := treetest.Output(t, cmd)
			_, ended, _ := strings.Cut(text, "\nerror: ")
			ended, _, _ = strings.Cut(ended, "\n")
			fails := strings.Count(text, "failed: ")
			if !strings.Contains(ended, c.want) || fails < c.least || fails > c.most || !strings.Contains(text, fmt.Sprintf(" Failed:%d}", fails)) || strings.Contains(text, "Complete:true") {
				t.Errorf("%d failures, and the error is %q\n%.2000s", fails, ended, text)
			}
			if ok, err := isLabelled(root, newLabel, SkipRoot); ok || err != nil {
				t.Errorf("the root is trusted for it: %v", err)
			}
		})
	}
}

// astray has the owner of a tree do something to the directory tree/d, or
// tree/z, as soon as the file is labelled; one of the two is met before most of
// the files. Nothing in outside, which has files of the same names, may change.
func astray(t *testing.T, file string, do func(d, outside string) error) {
	for engine, m := range engines() {
		top := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir tree\n"+
			"dir tree/d\nfile tree/d/in\nfile tree/f%02d x20\ndir tree/z\nfile tree/z/in\n"+
			"dir outside\nfile outside/in\nfile outside/f%02d x20\n")
		root, outside := filepath.Join(top, "tree"), filepath.Join(top, "outside")
		before := treetest.Read(t, outside)
		done := 0
		r, err := tree(t.Context(), root, newLabel, Options{Workers: 1, NoSeal: true, Trace: &Trace{Change: func(path, _, _ string) {
			if path != root && labelOf(t, root) != oldLabel {
				t.Errorf("%s: the root has a seal in spite of NoSeal", engine)
			}
			if filepath.Base(path) != file {
				return
			}
			dirs := []string{filepath.Dir(path)}
			if dirs[0] == root {
				dirs = []string{filepath.Join(root, "d"), filepath.Join(root, "z")}
			}
			for _, d := range dirs {
				done++
				if err := do(d, outside); err != nil {
					t.Errorf("%s: %v", engine, err)
				}
			}
		}}}, as(m))
		adds(t, r)
		if err != nil || !r.Complete || done != 2 {
			t.Errorf("%s, done to %d: %+v, %v", engine, done, r, err)
		}
		after := treetest.Read(t, outside)
		for _, moved := range []string{"d", "d/in", "z", "z/in"} {
			delete(after, moved)
		}
		if d := treetest.Diff(before, after); len(d) > 0 {
			t.Errorf("%s: outside:\n%s", engine, lines(d))
		}
	}
}

// TestLinkInPlace: a directory becomes a link to the outside after its name was
// read.
func TestLinkInPlace(t *testing.T) {
	astray(t, "f07", func(d, outside string) error {
		return errors.Join(os.RemoveAll(d), os.Symlink(outside, d))
	})
}

// TestMovedAway: a directory is moved outside while the walk is in it.
func TestMovedAway(t *testing.T) {
	astray(t, "in", func(d, outside string) error { return os.Rename(d, filepath.Join(outside, filepath.Base(d))) })
}

// ext4With is the top of an ext4 with, or ^ without, a feature.
func ext4With(t *testing.T, feature string) string {
	t.Helper()
	dir, image := mkdir(t, on(t, "tmpfs"), feature), filepath.Join(t.TempDir(), "image")
	for _, args := range [][]string{
		{"truncate", "-s", "64M", image},
		{"mkfs.ext4", "-q", "-F", "-b", "4096", "-N", "16384", "-O", feature, image},
		{"mount", "-o", "loop", image, dir},
	} {
		treetest.Output(t, exec.Command(args[0], args[1:]...))
	}
	t.Cleanup(func() {
		treetest.Check(t, unix.Unmount(dir, unix.MNT_DETACH))
	})
	return dir
}

// TestUnknownKinds: where directory records do not say what an entry is,
// directories are found all the same.
func TestUnknownKinds(t *testing.T) {
	treetest.Need(t, "root", "ext4")
	dir := ext4With(t, "^filetype")
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(dir), sys.OpenDir, 0)
	if e != 0 {
		t.Fatal(e)
	}
	buf := make([]byte, bufferSize)
	n, _ := sys.Getdents(fd, buf)
	sys.Close(fd)
	if d, _, err := sys.Parse(buf[:n]); err != nil || d.Kind != sys.KindUnknown {
		t.Fatalf("control: the kind of %q is known, %d: %v", d.Name, d.Kind, err)
	}
	for engine, m := range engines() {
		root := grow(t, mkdir(t, dir, engine), plain)
		r, err := tree(t.Context(), root, newLabel, Options{}, as(m))
		if err != nil || r.Seen != 46 || len(bearing(t, root, newLabel)) != 46 {
			t.Errorf("%s: %d labelled: %+v, %v", engine, len(bearing(t, root, newLabel)), r, err)
		}
	}
}

// TestTrustedAfterWait: whom the call waited for has done its work.
func TestTrustedAfterWait(t *testing.T) {
	root, release := called(t, "Trace.Wait")
	r, err := Tree(t.Context(), root, newLabel, &Options{Skip: SkipRoot, Trace: &Trace{Wait: func() {
		treetest.Set(t, root, ".", newLabel)
		release()
	}}})
	if err != nil || !r.Trusted || r.Seen != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
