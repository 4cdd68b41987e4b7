// SPDX-License-Identifier: Apache-2.0

package runtimes

import "testing"

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
