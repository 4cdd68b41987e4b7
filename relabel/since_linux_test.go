// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/test/treetest"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
)

// dated are the filesystems whose change times tell what has changed.
var dated = []string{"ext4", "xfs", "btrfs", "tmpfs"}

// grown is a tree of 3 directories in 3, each with files: 40 directories in all.
const grown = "default label=" + oldLabel + `
dir .
file f%d x3
dir a%d x3
file a0/f%d x3
dir a0/b%d x3
dir a1/b%d x3
dir a2/b%d x3
file a2/b2/f%d x3
dir a1/b1/c%d x3
file a1/b1/c1/f%d x3
link a1/l nowhere
`

const grownDirs, grownAll = 1 + 3 + 9 + 3, 1 + 3 + 3 + 3 + 9 + 3 + 3 + 3 + 1

// tick is the longest of the clock from which files get their times, and some.
const tick = 20 * time.Millisecond

// nextSecond waits until files get times that differ by a second from those they
// have got: the coarsest that a mark tells apart.
func nextSecond() { time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + tick))) }

// since labels root, looking only at what has changed.
func since(t *testing.T, root string) Report {
	t.Helper()
	r, err := Tree(t.Context(), root, newLabel, &Options{Trust: TrustUnchanged})
	adds(t, r)
	if err != nil || !r.Complete {
		t.Errorf("%s: %+v, %v", root, r, err)
	}
	return r
}

// TestSkipUnchanged: what is looked at, run after run.
func TestSkipUnchanged(t *testing.T) {
	treetest.Need(t, "root")
	var wg sync.WaitGroup
	for _, fs := range dated {
		root := grow(t, on(t, fs), grown)
		aged(t, root, time.Hour)
		wg.Go(func() { skipUnchanged(t, root) })
	}
	wg.Wait()
}

func skipUnchanged(t *testing.T, root string) {
	expect := func(what string, seen, unchanged int64) {
		t.Helper()
		nextSecond()
		r := since(t, root)
		if r.Seen != seen || r.Unchanged != unchanged || r.Since.IsZero() == (unchanged > 0) {
			t.Errorf("%s: %s: %d seen, %d unchanged since %v", root, what, r.Seen, r.Unchanged, r.Since)
		}
		if n := len(bearing(t, root, newLabel)); n != len(treetest.Read(t, root)) {
			t.Errorf("%s: %s: %d entries are labelled", root, what, n)
		}
	}
	try := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	nextSecond()
	if r, err := Tree(t.Context(), root, newLabel, nil); err != nil || r.Written != grownAll {
		t.Errorf("%+v, %v", r, err)
	}
	// The labels of the directories were written, and theirs is the time since
	// when they are told apart.
	nextSecond()
	r := since(t, root)
	if r.Since.IsZero() || r.Seen < grownAll-3 || r.Written != 0 {
		t.Errorf("%s: after the first run: %+v", root, r)
	}
	// The root, and what is in it.
	const first, dirs = 1 + 3 + 3, grownDirs - 1
	expect("nothing changed", first, dirs)
	expect("nothing changed, again", first, dirs)

	try(os.WriteFile(filepath.Join(root, "a2/b2/new"), nil, 0o600))
	expect("a file more", first+1+4, dirs-1)
	try(os.Rename(filepath.Join(root, "a1/b1/c1"), filepath.Join(root, "a0/b0/c1")))
	// b0 and b1 each with what is in them, and all beneath c1.
	expect("a directory moved", first+2+(1+3)+2, dirs-3)
	try(os.Remove(filepath.Join(root, "f1")))
	expect("a file less in the root", first-1, dirs)
	treetest.Set(t, root, "a2/b2/f1", oldLabel)
	r = since(t, root)
	if labelOf(t, filepath.Join(root, "a2/b2/f1")) != oldLabel || r.Unchanged != dirs {
		t.Errorf("%s: what is said not to be found was: %+v", root, r)
	}
	if r, err := Tree(t.Context(), root, newLabel, nil); err != nil || r.Written != 1 {
		t.Errorf("%s: %+v, %v", root, r, err)
	}
}

// TestSkipUnchangedWithout: where there is nothing to rely on, everything is read,
// and the caller is told.
func TestSkipUnchangedWithout(t *testing.T) {
	treetest.Need(t, "root")
	marked := func(t *testing.T, change func(t *testing.T, root string)) string {
		root := grow(t, on(t, "tmpfs"), grown)
		nextSecond()
		since(t, root)
		nextSecond()
		since(t, root)
		change(t, root)
		return root
	}
	rewrite := func(from, to string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			t.Helper()
			have, err := getMark(root)
			if err != nil || !strings.Contains(have, from) {
				t.Fatalf("%q, %v", have, err)
			}
			if err := unix.Setxattr(root, commit.MarkName, []byte(strings.Replace(have, from, to, 1)), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	future := fmt.Sprintf("left=%d", time.Now().Add(time.Hour).UnixNano())
	for name, change := range map[string]func(t *testing.T, root string){
		"no mark":         func(t *testing.T, root string) { _ = unix.Removexattr(root, commit.MarkName) },
		"another version": rewrite("version=3", "version=2"),
		"another label":   rewrite("label=system_u", "label=user_u"),
		"another root":    rewrite("root=", "root=1"),
		"a later time": func(t *testing.T, root string) {
			k, _ := getMark(root)
			rewrite(k[strings.Index(k, "left="):strings.Index(k, " entries")], future)(t, root)
		},
		"more":           rewrite("version=3", "version=3 "),
		"the root wrong": func(t *testing.T, root string) { treetest.Set(t, root, ".", oldLabel) },
		"a run to another": func(t *testing.T, root string) {
			if _, err := Tree(t.Context(), root, "system_u:object_r:container_file_t:s0:c3,c4", nil); err != nil {
				t.Error(err)
			}
			treetest.Set(t, root, ".", newLabel)
		},
		"a failure": func(t *testing.T, root string) {
			file := filepath.Join(root, "a2/b2/f1")
			treetest.Set(t, root, "a2/b2/f1", oldLabel)
			immutable(t, file, true)
			if _, err := Tree(t.Context(), root, newLabel, nil); err == nil {
				t.Error("no failure")
			}
			immutable(t, file, false)
			treetest.Set(t, root, ".", newLabel)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := marked(t, change)
			treetest.Set(t, root, "a1/b1/c1/f1", oldLabel) // found by reading alone
			told := ""
			r, err := Tree(t.Context(), root, newLabel, &Options{Trust: TrustUnchanged, Trace: &Trace{Note: func(text string) { told += text }}})
			adds(t, r)
			if err != nil || !r.Complete || !r.Since.IsZero() || r.Seen != grownAll || r.Unchanged != 0 || !strings.Contains(told, "everything is read") {
				t.Errorf("%+v, %v, %q", r, err, told)
			}
			if n := len(bearing(t, root, newLabel)); n != grownAll {
				t.Errorf("%d labelled", n)
			}
		})
	}
}

// TestNoMark: a run that left something alone leaves no mark, and one that found
// all as it was writes none.
func TestNoMark(t *testing.T) {
	treetest.Need(t, "root")
	for name, c := range map[string]struct {
		o    func(root string) Options
		mark bool
	}{
		"plain":     {func(string) Options { return Options{} }, true},
		"no sync":   {func(string) Options { return Options{Advanced: Advanced{NoSync: true}} }, false},
		"dry":       {func(string) Options { return Options{inner: inner{check: true}, Trust: TrustUnchanged} }, false},
		"exclusion": {func(root string) Options { return Options{Exclude: []string{filepath.Join(root, "a1")}} }, false},
		"links":     {func(string) Options { return Options{HardLinks: LinksSkip} }, false},
		"mount": {func(root string) Options {
			if err := unix.Mount("test", filepath.Join(root, "a1"), "tmpfs", 0, ""); err != nil {
				t.Error(err)
			}
			return Options{}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := grow(t, on(t, "tmpfs"), grown)
			if err := os.Link(filepath.Join(root, "f1"), filepath.Join(root, "link")); err != nil {
				t.Fatal(err)
			}
			defer unix.Unmount(filepath.Join(root, "a1"), unix.MNT_DETACH) // if it is one
			o := c.o(root)
			r, err := Tree(t.Context(), root, newLabel, &o)
			if err != nil || !r.Complete && name != "dry" {
				t.Errorf("%+v, %v", r, err)
			}
			if _, err := getMark(root); (err == nil) != c.mark {
				t.Errorf("the mark: %v", err)
			}
			if !c.mark {
				return
			}
			nextSecond()
			before := treetest.Snapshot(t, root)
			if r, err := Tree(t.Context(), root, newLabel, nil); err != nil || r.Written != 0 {
				t.Errorf("%+v, %v", r, err)
			}
			if d := treetest.Diff(before, treetest.Snapshot(t, root)); len(d) > 0 {
				t.Errorf("a second run changed %s", lines(d))
			}
		})
	}
}

func getMark(root string) (string, error) {
	buf := make([]byte, 4096)
	n, err := unix.Getxattr(root, commit.MarkName, buf)
	return string(buf[:max(n, 0)]), err
}

// TestPartial: what is mounted beside the root leaves nothing of it to others.
func TestPartial(t *testing.T) {
	for name, c := range map[string]struct {
		with    func(r *run)
		partial bool
	}{
		"whole":         {func(*run) {}, false},
		"excluded":      {func(r *run) { r.bounds.Excluded = map[mounts.ID]string{{}: "excluded"} }, true},
		"mounted":       {func(r *run) { r.proc.Mounts = []mountinfo.Mount{{Point: "/v/m"}} }, true},
		"mounted aside": {func(r *run) { r.proc.Mounts = []mountinfo.Mount{{Point: "/vm"}} }, false},
	} {
		r := &run{proc: &mounts.Proc{}}
		c.with(r)
		if got := r.partial(&mount{Mount: &mounts.Mount{Real: "/v"}}); got != c.partial {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestUnchangedMtimePutBack: what is moved into the root right behind the mark, with
// the root's modification time put back, is found by the next run.
func TestUnchangedMtimePutBack(t *testing.T) {
	treetest.Need(t, "root")
	for _, fs := range dated {
		dir := on(t, fs)
		root := grow(t, dir, grown)
		outside := mkdir(t, dir, "outside", "d")
		if err := os.WriteFile(filepath.Join(outside, "f"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		treetest.Label(t, root, newLabel)
		then := time.Now().Add(-time.Hour)
		putBack := func() {
			if err := os.Chtimes(root, time.Time{}, then); err != nil {
				t.Fatal(err)
			}
		}
		putBack()
		since(t, root)
		if err := os.Rename(outside, filepath.Join(root, "d")); err != nil {
			t.Fatal(err)
		}
		putBack()
		since(t, root)
		if l := labelOf(t, filepath.Join(root, "d/f")); l != newLabel {
			t.Errorf("%s: it has %s", fs, l)
		}
	}
}

// TestSubvolume: a snapshot begins with the times of what it was taken from.
func TestSubvolume(t *testing.T) {
	treetest.Need(t, "root", "btrfs")
	btrfs := func(args ...string) {
		if out, err := exec.Command("btrfs", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	dir := on(t, "btrfs")
	from, root := filepath.Join(dir, "from"), grow(t, dir, grown)
	btrfs("subvolume", "create", from)
	grow(t, from, grown)
	nextSecond()
	since(t, root)
	nextSecond()
	since(t, root)
	btrfs("subvolume", "snapshot", from, filepath.Join(root, "a1/b1/snap"))
	since(t, root)
	all := treetest.Read(t, root)
	if n := len(bearing(t, root, newLabel)); n != len(all) || n < 2*grownAll {
		t.Errorf("%d of %d labelled", n, len(all))
	}
}

var histories = 400

// TestSkipUnchangedHistories plays random histories: rounds of changes, half of them
// while a run is under way, and runs that look only at what has changed. Whatever
// was created or moved in must have the label after a run that nothing
// interfered with.
func TestSkipUnchangedHistories(t *testing.T) {
	treetest.Need(t, "root")
	const rounds = 4
	histories := histories
	if testing.Short() {
		histories /= 10
	}
	var all []*history
	for i := range histories {
		fs := dated[i%len(dated)]
		dir := filepath.Join(on(t, fs), fmt.Sprint("history", i))
		h := &history{t: t, random: rand.New(rand.NewPCG(uint64(i), 7)), root: grow(t, mkdir(t, dir), grown), fs: fs}
		h.outside = filepath.Join(dir, "outside")
		treetest.Build(t, h.outside, treetest.Text(t, grown))
		all = append(all, h)
	}
	for _, h := range all {
		since(t, h.root)
	}
	passed, made := int64(0), 0
	for round := range rounds {
		nextSecond()
		for _, h := range all {
			if round%2 == 0 {
				h.change(3)
			} else {
				var wg sync.WaitGroup
				wg.Go(func() { h.change(5) })
				_, err := Tree(t.Context(), h.root, newLabel, &Options{Trust: TrustUnchanged, Advanced: Advanced{NoSync: h.fs != "tmpfs"}}) // a mark, where it costs no sync
				wg.Wait()
				if err != nil {
					t.Errorf("%s: %v", h.root, err)
				}
			}
		}
		for _, h := range all {
			r := since(t, h.root)
			passed += r.Unchanged
			for path, l := range treetest.Read(t, h.root) {
				if l != newLabel {
					t.Errorf("%s: round %d: %s was missed, after %s", h.root, round, path, strings.Join(h.did, ", "))
				}
			}
			made += len(h.did)
			h.did = nil
		}
	}
	if passed < int64(histories*rounds) || made < histories*rounds {
		t.Errorf("%d directories were not looked into, %d changes made: that shows little", passed, made)
	}
}

type history struct {
	t       *testing.T
	random  *rand.Rand
	root    string
	outside string // a tree with the old label and old times
	fs      string
	n       int
	did     []string
}

// change makes changes, as the owner of a volume may.
func (h *history) change(n int) {
	for range n {
		h.n++
		here, there := h.dir(h.root), h.dir(h.root)
		out := filepath.Join(h.outside, fmt.Sprintf("a%d/b%d", h.random.IntN(3), h.random.IntN(3)))
		fresh := filepath.Join(here, fmt.Sprint("new", h.n))
		what, err := "", error(nil)
		switch h.random.IntN(11) {
		case 0:
			what, err = "create", os.WriteFile(fresh, nil, 0o600)
		case 1:
			what, err = "mkdir", os.MkdirAll(filepath.Join(fresh, "deep", "deeper"), 0o700)
		case 2:
			what, err = "symlink", os.Symlink("nowhere", fresh)
		case 3:
			what, err = "link", os.Link(filepath.Join(h.outside, "f0"), fresh)
		case 4:
			what, err = "move in", os.Rename(out, fresh)
		case 5:
			what, err = "exchange", unix.Renameat2(unix.AT_FDCWD, here, unix.AT_FDCWD, out, unix.RENAME_EXCHANGE)
		case 6:
			what, err = "exchange within", unix.Renameat2(unix.AT_FDCWD, here, unix.AT_FDCWD, there, unix.RENAME_EXCHANGE)
		case 7:
			what, err = "move within", os.Rename(there, fresh)
		case 8:
			what, err = "replace", os.Rename(filepath.Join(h.outside, "f1"), filepath.Join(here, "f1"))
		case 9:
			what, err = "remove", os.RemoveAll(fresh)
		case 10:
			what = "chmod"
			err = os.Chmod(here, 0o750)
		}
		if err == nil && h.random.IntN(2) == 0 {
			// As tar and rsync do when they have filled a directory.
			what += " and set back"
			err = os.Chtimes(here, time.Time{}, time.Now().Add(-time.Hour))
		}
		switch {
		case err == nil:
			h.did = append(h.did, what+" "+strings.TrimPrefix(here, h.root))
		case os.IsNotExist(err), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EBUSY), errors.Is(err, unix.ENOTDIR):
			// gone by an earlier change, or into itself
		default:
			h.t.Errorf("%s: %v", what, err)
		}
	}
}

// dir is a directory beneath root, at random; not root itself.
func (h *history) dir(root string) string {
	var all []string
	for path, kind := range treetest.Types(h.t, root) {
		if kind == treetest.Dir && path != "." {
			all = append(all, path)
		}
	}
	if len(all) == 0 {
		return root
	}
	slices.Sort(all)
	return filepath.Join(root, all[h.random.IntN(len(all))])
}
