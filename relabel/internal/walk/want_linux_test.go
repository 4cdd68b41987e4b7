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

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/relabel/undo"
	"github.com/fastlabel/fastlabel/test/treetest"
)

var numbers = regexp.MustCompile(`\d+`)

// TestWant: each directory, and what is in it, gets what was answered when it was
// entered, by each way and however it is written; and that is asked once.
func TestWant(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	root := filepath.Join(treetest.Fresh(t, "tmpfs"), "tree")
	text := "dir .\nlink l d0\n"
	for i := range 6 {
		text += fmt.Sprintf("dir d%d\nfile d%[1]d/f%%03d x100\ndir d%[1]d/s%%d x10\nfile d%[1]d/s%%d/f x10\n", i)
	}
	treetest.Build(t, root, treetest.Text(t, text))
	dirs := treetest.Count(t, root).Dirs
	run := 0
	for _, way := range slices.Compact([]xattrio.Way{xattrio.ByDescriptor, xattrio.Fastest()}) {
		for _, writes := range []Writes{ReadFirst, Guess} {
			for _, records := range []bool{false, true} {
				run++
				name := fmt.Sprintf("%s-%d-%t", way, writes, records)
				// Contexts that a policy knows, of several lengths, for a directory and its
				// parent too: each number in its path is a category.
				label := func(dir string) string {
					l := fmt.Sprintf("system_u:object_r:container_file_t:s0:c%d", run)
					for i, n := range numbers.FindAllString(strings.TrimPrefix(dir, root), -1) {
						l += fmt.Sprintf(",c%d%s", 10*(i+2), n)
					}
					return l
				}
				var mu sync.Mutex
				asked := map[string]int{}
				j := &Job{
					Label: func(parent *Dir, name string) *Want {
						dir := root
						if parent != nil {
							dir = parent.Path(name[:len(name)-1])
						}
						mu.Lock()
						defer mu.Unlock()
						asked[dir]++
						return &Want{label(dir)}
					},
					Writes: writes, Workers: 3, Kernel: Kernel{Way: way},
					Events: Events{Failed: func(path, op string, err error) { t.Errorf("%s: %s %s: %v", name, op, path, err) }},
				}
				if records {
					j.Writes, j.Keep = ReadFirst, func([]undo.Page) error { return nil }
				}
				m := enclosed(t, root)
				k := New(j, m, &Top{FD: m.Top, Outcome: Skipped}, nil)
				if err := k.Run(t.Context()); err != nil {
					t.Fatal(name, err)
				}
				for path, has := range treetest.Read(t, root) {
					dir := filepath.Join(root, path)
					if _, is := asked[dir]; !is {
						dir = filepath.Dir(dir)
					}
					if want := label(dir); path != "." && has != want {
						t.Errorf("%s: %s has %q, want %q", name, path, has, want)
					}
				}
				if most := slices.Max(slices.Collect(maps.Values(asked))); most > 1 || int64(len(asked)) != int64(dirs) {
					t.Errorf("%s: asked of %d directories of %d, up to %d times", name, len(asked), dirs, most)
				}
			}
		}
	}
}

// enclosed is the mount that root is the top of.
func enclosed(t *testing.T, root string) *mounts.Mount {
	t.Helper()
	p, err := mounts.OpenProc()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	m, err := p.OpenRoot(root, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	if err := p.Learn(m); err != nil {
		t.Fatal(err)
	}
	if op, e := m.Enclose(mounts.Bounds{}, mounts.Try{Clone: true, Openat2: true}, nil); e != 0 {
		t.Fatal(op, e)
	}
	t.Cleanup(m.Leave)
	return m
}
