// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"path/filepath"
	"testing"

	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// numbered are rules by which an entry's label has each number in the path of its
// directory or, of a directory, its own.
type numbered struct {
	dir   string
	label func(dir string) string
	asked func(dir string)
}

func (n *numbered) Entry(name []byte, kind sys.Kind) (string, error) {
	switch {
	case kind == sys.KindDir:
		return n.label(filepath.Join(n.dir, string(name))), nil
	case kind == sys.KindLink || string(name) == "f007":
		return "", nil
	}
	return n.label(n.dir), nil
}

func (n *numbered) Beneath(name []byte) *Want {
	dir := filepath.Join(n.dir, string(name))
	n.asked(dir)
	return &Want{Rules: &numbered{dir, n.label, n.asked}}
}

// enclosed is the mount that root is the top of.
func enclosed(t *testing.T, root string) *mounts.Mount {
	t.Helper()
	p, err := mounts.OpenProc(mounts.Seen{})
	treetest.Must(t, err)
	t.Cleanup(p.Close)
	m, err := p.OpenRoot(root, nil, new(run.Activity))
	treetest.Must(t, err)
	t.Cleanup(m.Close)
	treetest.Must(t, p.Learn(m, mounts.Bounds{}))
	if op, e := m.Enclose(mounts.Bounds{}, mounts.Try{Clone: true, Openat2: true}); e != 0 {
		t.Fatal(op, e)
	}
	t.Cleanup(m.Leave)
	return m
}
