// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestLabels has the container's process read the labels: with the hook all are
// right when it starts. Without the hook, and with the hook where nothing is
// asked, the same process finds all of them wrong.
func TestLabels(t *testing.T) {
	each(t, func(t *testing.T, c cell) {
		v := disk(t)
		x := c.with(t, v)
		x.process = guestArgs(newLabel, v.entries, v.entries)
		x.start(t).succeeds(t, "control: without a hook all are wrong")
		x.hooks = []hook{ours(place.hook, 0)}
		x.annotations[askRelabel] = "false"
		x.start(t).succeeds(t, "control: with the hook and nothing asked all are wrong")
		delete(x.annotations, askRelabel)
		x.start(t).succeeds(t, "control: the same without the annotation")
		v.has(t, oldLabel)

		c.with(t, v, ours(place.hook, 0)).start(t).succeeds(t, "with the hook all are right")
		v.has(t, newLabel)
	})
}

// TestSecond starts a container on a volume that is done: the root is all that
// the hook looks at, so that a label which is wrong deep beneath it stays. With
// skip=none the same start heals it.
func TestSecond(t *testing.T) {
	each(t, func(t *testing.T, c cell) {
		v := disk(t)
		x := c.with(t, v, ours(place.hook, 0))
		x.start(t).succeeds(t, "first")
		treetest.Set(t, v.root, deep, oldLabel)
		before := treetest.Snapshot(t, v.root+"/...")
		x.process = guestArgs(newLabel, v.entries, 1)
		x.start(t).succeeds(t, "second, with one wrong label that nobody looks at")
		if diff := treetest.Diff(before, treetest.Snapshot(t, v.root+"/...")); len(diff) > 0 {
			t.Errorf("changed by the second start: %q", diff)
		}
		x.annotations[askSkip] = "none"
		x.process = guestArgs(newLabel, v.entries, 0)
		x.start(t).succeeds(t, "control: with skip=none it is healed")
		v.has(t, newLabel)
	})
}
