// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
)

var numbers = regexp.MustCompile(`\d+`)

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

// TestWant: each entry gets what its rule says for its name and kind, or what Change
// makes of that, or is left, by each way; and a directory is asked about once.
func TestWant(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	root := filepath.Join(treetest.Fresh(t, "tmpfs"), "tree")
	text := "dir .\nlink l d0\n"
	for i := range 6 {
		text += fmt.Sprintf("dir d%d\nfile d%[1]d/f%%03d x100\ndir d%[1]d/s%%d x10\nfile d%[1]d/s%%d/f x10\n", i)
	}
	treetest.Build(t, root, treetest.Text(t, text))
	dirs := treetest.Count(t, root).Dirs
	all := int64(len(treetest.Read(t, root)) - 1)
	run := 0
	for _, way := range slices.Compact([]sys.Way{sys.ByDescriptor, xattrio.Fastest()}) {
		for _, changes := range []bool{false, true} {
			run++
			name := fmt.Sprintf("%s-%t", way, changes)
			// Contexts that a policy knows, of several lengths, for a directory and its
			// parent too: each number in its path is a category.
			label := func(dir string) string {
				l := fmt.Sprintf("system_u:object_r:container_file_t:s0:c%d", run)
				for i, n := range numbers.FindAllString(strings.TrimPrefix(dir, root), -1) {
					l += fmt.Sprintf(",c%d%s", 10*(i+2), n)
				}
				return l
			}
			written := label
			var mu sync.Mutex
			asked := map[string]int{}
			j := &Job{
				Want: &Want{label(root), &numbered{root, label, func(dir string) {
					mu.Lock()
					defer mu.Unlock()
					asked[dir]++
				}}},
				Workers: 3, Kernel: Kernel{Way: way},
				Events: Events{Failed: func(path, op string, err error) { t.Errorf("%s: %s %s: %v", name, op, path, err) }},
			}
			if changes {
				written = func(dir string) string { return label(dir) + ",c900" }
				long := label(root)
				for i := range 100 {
					long += fmt.Sprintf(",c%d", 500+2*i)
				}
				treetest.Set(t, root, "d0", long)
				j.Change = func(has, want string) (string, Outcome, error) {
					if has == "" {
						t.Errorf("%s: a label is not told", name)
					}
					if has == want+",c900" {
						return "", Right, nil
					}
					return want + ",c900", Written, nil
				}
			}
			before := treetest.Read(t, root)
			const left = 6 + 1 // f007, and the link
			for _, want := range []Tally{
				{Seen: all, Of: [outcomes]int64{Written: all - left, Skipped: left}},
				{Seen: all, Of: [outcomes]int64{Right: all - left, Skipped: left}},
			} {
				clear(asked)
				m := enclosed(t, root)
				k := New(j, m, &Top{FD: m.Top, Outcome: Skipped}, ample(t))
				if err := k.Run(t.Context()); err != nil {
					t.Fatal(name, err)
				}
				got := k.Tally()
				want.Found, want.Entered = got.Found, got.Entered
				if got != want {
					t.Errorf("%s: %+v, want %+v", name, got, want)
				}
				for path, has := range treetest.Read(t, root) {
					dir := filepath.Join(root, path)
					if _, is := asked[dir]; !is {
						dir = filepath.Dir(dir)
					}
					want := written(dir)
					if base := filepath.Base(path); base == "l" || base == "f007" {
						want = before[path]
					}
					if path != "." && has != want {
						t.Errorf("%s: %s has %q, want %q", name, path, has, want)
					}
				}
				if most := slices.Max(slices.Collect(maps.Values(asked))); most > 1 || int64(len(asked)) != int64(dirs-1) {
					t.Errorf("%s: asked of %d directories of %d, up to %d times", name, len(asked), dirs-1, most)
				}
			}
		}
	}
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
