// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/test/treetest"
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
			if _, err := Tree(t.Context(), root, newLabel, &Options{Advanced: Advanced{NoSeal: true}}); err == nil {
				t.Error("no failure")
			}
			immutable(t, file, false)
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
