// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"fmt"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// twins has an entry of every type, links to inside, to outside and to nowhere,
// names of every byte, and labels of several kinds.
const twins = volume + `
hardlink a/b/hard a/f3
hardlink hard a/b/c/deep
link a/out /etc/passwd
link a/nowhere /no/such/place
link up ..
char a/char 1:3
block a/block 7:0
names names every-byte
dir "two\nlines/label=x"
fifo "two\nlines/label=x/ "
socket "names/\xff\xfe.socket"
default label=system_u:object_r:container_file_t:s0:c7,c8
dir other
file other/f%d x5
default label=system_u:object_r:container_file_t:s0:c1,c2
dir right
file right/f%d x5
`

// wrongless are those of twins that have the label already, where :Z asks for it.
const wrongless = 6

// TestRuntimeTwin labels two trees that are the same, one by podman's :Z or :z
// and one by us, starts a container on each, and finds the same bytes at every
// entry, those included that the containers made.
func TestRuntimeTwin(t *testing.T) {
	for asks, want := range map[string]string{"Z": labelA, "z": shared} {
		t.Run(asks, func(t *testing.T) {
			each(t, func(t *testing.T, dir string) {
				theirs, ours := mkdir(t, dir, "theirs"), mkdir(t, dir, "ours")
				tree := treetest.Text(t, twins)
				for _, root := range []string{theirs, ours} {
					treetest.Build(t, root, tree)
				}
				before := raw(t, theirs)
				if diff := treetest.Diff(before, raw(t, ours)); diff != nil {
					t.Fatalf("the trees are no twins: %q", diff)
				}
				c := container{engine: podmanRunc, level: levelA, volume: theirs, asks: asks}
				c.run(t).used(t, c, len(before))
				if n := changed(before, raw(t, theirs)); n < len(before)-wrongless {
					t.Errorf("control: podman changed %d of %d entries", n, len(before))
				}

				label(t, 0, "--label", want, ours)
				all(t, ours, want)
				c = container{engine: crun, level: levelA, volume: ours}
				c.run(t).used(t, c, len(before))
				if diff := treetest.Diff(raw(t, theirs), raw(t, ours)); diff != nil {
					t.Errorf("podman's (-) and ours (+): %q", diff)
				}
			})
		})
	}
}

// changed counts the entries whose label is another.
func changed(before, after map[string]string) int {
	n := 0
	for path, was := range before {
		if after[path] != was {
			n++
		}
	}
	return n
}

// raw is the type of each entry and its label to the byte.
func raw(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for path, item := range treetest.List(t, root) {
		out[path] = fmt.Sprintf("%v %q", item.Type, item.Label)
	}
	return out
}

// used fails the test unless the container's process ran in its domain, read
// all the entries, and wrote.
func (m met) used(t *testing.T, c container, entries int) {
	t.Helper()
	m.confined(t, c)
	if m.Read != 0 || m.Write != 0 || m.Entries != entries {
		t.Errorf("%s: read %d of %d entries (%v), wrote: %v", c.engine, m.Entries, entries, m.Read, m.Write)
	}
}
