// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"path/filepath"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// The label that volumes have, and the one that containers ask for.
const (
	oldLabel = "system_u:object_r:etc_t:s0"
	newLabel = "system_u:object_r:container_file_t:s0:c1,c2"
)

// small is a volume of every type of entry that a container can bring about.
const small = `default label=` + oldLabel + `
dir a/b/c/d
file f%02d x10
file a/f%02d x20
file a/b/f%02d x20
file a/b/c/d/f%02d x40
link a/l /etc/passwd
fifo a/b/p
hardlink a/b/c/h a/f03
`

// slow has more files than a server can label in the time that hooks have.
const slow = "default label=" + oldLabel + "\ndir a/b\nfile a/f%03d x400\nfile a/b/f%03d x400\n"

// volume is a tree, and how many entries it has with its root.
type volume struct {
	root    string
	entries int
}

// plant makes the tree at dir/volume.
func plant(t testing.TB, dir, text string) volume {
	t.Helper()
	v := volume{root: filepath.Join(dir, "volume")}
	treetest.Build(t, v.root, treetest.Text(t, text))
	treetest.Set(t, v.root, ".", oldLabel)
	v.entries = len(treetest.Read(t, v.root))
	return v
}

// disk makes a small volume on ext4.
func disk(t testing.TB) volume {
	t.Helper()
	return plant(t, onDisk(t), small)
}

// labels counts the labels of the entries.
func (v volume) labels(t testing.TB) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, label := range treetest.Read(t, v.root) {
		count[label]++
	}
	return count
}

// has fails the test unless every entry has the label.
func (v volume) has(t testing.TB, label string) {
	t.Helper()
	if got := v.labels(t); len(got) != 1 || got[label] != v.entries {
		t.Errorf("%v, not %d of %s", got, v.entries, label)
	}
}

// sealed fails the test if the root is trusted for a label.
func (v volume) sealed(t testing.TB) {
	t.Helper()
	if root := treetest.Read(t, v.root)["."]; root == oldLabel || root == newLabel {
		t.Errorf("the root has %s, of %v", root, v.labels(t))
	}
}

// partly fails the test unless the walk was on its way: without that, nothing
// was cut short.
func (v volume) partly(t testing.TB) {
	t.Helper()
	if got := v.labels(t); got[oldLabel] == 0 || got[newLabel] == 0 {
		t.Errorf("not cut short in the midst: %v", got)
	}
}

// onDisk makes a directory on ext4.
func onDisk(t testing.TB) string {
	t.Helper()
	treetest.Need(t, "root", "ext4")
	return treetest.Filesystems(t)[0].Dir(t)
}
