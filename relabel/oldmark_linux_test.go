// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestOldMark: the attribute that earlier versions left on a root is removed by the first
// run that writes there, and without a note. A run that writes nothing leaves it.
func TestOldMark(t *testing.T) {
	const oldMark = "trusted.fastlabel"
	treetest.Need(t, "root")
	marked := func(t *testing.T) string {
		root := grow(t, on(t, "ext4"), "default label="+newLabel+"\ndir .\nfile f%02d x40\n")
		if err := unix.Setxattr(root, oldMark, []byte("version=3 label="+newLabel), 0); err != nil {
			t.Fatal(err)
		}
		return root
	}
	isMarked := func(t *testing.T, root string) bool {
		_, err := unix.Getxattr(root, oldMark, nil)
		if err != nil && !errors.Is(err, unix.ENODATA) {
			t.Fatal(err)
		}
		return err == nil
	}
	stray := func(t *testing.T, root string) { treetest.Set(t, root, "f07", oldLabel) }
	relabel := func(t *testing.T, root string) (Report, error) { return Tree(t.Context(), root, newLabel, nil) }
	byRules := func(t *testing.T, root string) (Report, error) {
		return Apply(t.Context(), root, Rules{Contexts: contextsFor(t, root, "@(/.*)? "+newLabel+"\n")}, nil)
	}
	for name, c := range map[string]struct {
		before func(t *testing.T, root string)
		run    func(t *testing.T, root string) (Report, error)
		stays  bool
		fails  bool
	}{
		"all right": {run: relabel, stays: true},
		"checked": {before: stray, stays: true, run: func(t *testing.T, root string) (Report, error) {
			return Check(t.Context(), root, newLabel, nil)
		}},
		"a stray": {before: stray, run: relabel},
		"another label": {run: relabel, before: func(t *testing.T, root string) {
			treetest.Set(t, root, ".", oldLabel)
		}},
		"without a seal": {before: stray, run: func(t *testing.T, root string) (Report, error) {
			return Tree(t.Context(), root, newLabel, &Options{Advanced: Advanced{NoSeal: true}})
		}},
		"a failure": {run: relabel, fails: true, before: func(t *testing.T, root string) {
			stray(t, root)
			treetest.Set(t, root, "f08", oldLabel)
			path := filepath.Join(root, "f08")
			immutable(t, path, true)
			t.Cleanup(func() { immutable(t, path, false) })
		}},
		"by rules, all right": {run: byRules, stays: true},
		"by rules, a stray":   {before: stray, run: byRules},
	} {
		t.Run(name, func(t *testing.T) {
			root := marked(t)
			if c.before != nil {
				c.before(t, root)
			}
			r, err := c.run(t, root)
			if (err != nil) != c.fails || !c.fails && len(r.Notes) > 0 {
				t.Errorf("%+v, %v", r, err)
			}
			if is := isMarked(t, root); is != c.stays {
				t.Errorf("the mark is there: %t", is)
			}
		})
	}
}
