// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

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
