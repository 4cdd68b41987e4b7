// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// victim is a tree beside a directory and a file that are none of its own.
const victim = "default label=" + oldLabel + `
dir outside
file outside/f%02d x20
file out
dir tree
dir tree/d
file tree/d/f%02d x20
file tree/g
`

// attack has the owner of the tree exchange a directory with a link to the
// outside, and mount a file from the outside over one inside, over and over,
// while the tree is labelled that many times, or until it has led astray.
func attack(t *testing.T, times int, links, mounts bool, label func(root, label string)) (strayed bool, turns int) {
	t.Helper()
	top := grow(t, on(t, "tmpfs"), victim)
	root, outside, out := filepath.Join(top, "tree"), filepath.Join(top, "outside"), filepath.Join(top, "out")
	treetest.Must(t, unix.Symlink(outside, filepath.Join(root, "l")))
	watch := []string{outside + "/...", out}
	before := treetest.Snapshot(t, watch...)
	ctx, cancel := context.WithTimeout(t.Context(), treetest.Patience)
	defer cancel()
	var attackers sync.WaitGroup
	attackers.Go(func() {
		for links && ctx.Err() == nil {
			exchange(t, filepath.Join(root, "d"), filepath.Join(root, "l"))
		}
	})
	attackers.Go(func() {
		over := filepath.Join(root, "g")
		for mounts && ctx.Err() == nil {
			treetest.Check(t, unix.Mount(out, over, "", unix.MS_BIND, ""))
			treetest.Check(t, unix.Unmount(over, unix.MNT_DETACH))
		}
	})
	for labels := []string{newLabel, "u:r:t:s0"}; ctx.Err() == nil && !strayed && turns < times; turns++ {
		label(root, labels[turns%2])
		if d := treetest.Diff(before, treetest.Snapshot(t, watch...)); len(d) > 0 {
			strayed = true
			t.Logf("outside:\n%s", lines(d))
		}
	}
	cancel()
	attackers.Wait()
	return strayed, turns
}

// TestEscape: whatever its owner does to the tree, nothing outside is touched, with one
// label and by rules.
func TestEscape(t *testing.T) {
	treetest.Need(t, "root")
	for how, run := range labellings(t) {
		for engine, m := range engines() {
			t.Run(how+"/"+engine, func(t *testing.T) {
				written := int64(0)
				strayed, turns := attack(t, sized(300, 50), true, true, func(root, label string) {
					// A mount that is there at the start belongs to the tree.
					r, err := run(t.Context(), root, label, Options{OneFilesystem: true}, as(m))
					adds(t, r)
					written += r.Written
					// A mount that came and went is skipped; a directory that
					// was moved while its entries waited is a failure.
					if err != nil && !errors.Is(err, syscall.ESTALE) {
						t.Errorf("%+v, %v", r, err)
					}
				})
				if strayed || turns < 10 || written < 20 {
					t.Errorf("strayed %t in %d turns, %d labels written", strayed, turns, written)
				}
			})
		}
	}
}

// TestNaiveEscapes is the control: who looks up paths is led astray, each way.
func TestNaiveEscapes(t *testing.T) {
	treetest.Need(t, "root")
	for _, links := range []bool{true, false} {
		strayed, turns := attack(t, math.MaxInt, links, !links, func(root, label string) {
			_ = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
				if err == nil {
					_ = unix.Lsetxattr(path, treetest.Attr, []byte(label), 0)
				}
				return nil // whatever becomes of one, the others follow
			})
		})
		if !strayed {
			t.Errorf("links %t: the attack did nothing in %d turns", links, turns)
		}
	}
}
