// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestUndoWith: with the options by which a walk goes about it otherwise, too, what
// is written is on record, and nothing else is, and Restore puts it back.
func TestUndoWith(t *testing.T) {
	treetest.Need(t, "root")
	for name, c := range map[string]struct {
		trees func(t *testing.T, n int) []string // n trees whose roots have newLabel, where some do not
		o     Options
	}{
		"--skip unchanged": {func(t *testing.T, n int) (roots []string) {
			for range n {
				roots = append(roots, grow(t, on(t, "ext4"), grown))
				aged(t, roots[len(roots)-1], time.Hour)
			}
			for range 2 { // the second leaves out what the first has touched
				nextSecond()
				for _, root := range roots {
					since(t, root)
				}
			}
			nextSecond()
			for _, root := range roots {
				for _, name := range []string{"new", "a0/new"} {
					if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
						t.Fatal(err)
					}
					treetest.Set(t, root, name, oldLabel)
				}
			}
			time.Sleep(10 * time.Millisecond) // they are older than the run
			return roots
		}, Options{Trust: TrustUnchanged}},
		"hard links": {func(t *testing.T, n int) (roots []string) {
			for range n {
				root := grow(t, on(t, "xfs"), plain)
				if err := os.Link(filepath.Join(root, "f00"), filepath.Join(root, "other")); err != nil {
					t.Fatal(err)
				}
				treetest.Set(t, root, ".", newLabel)
				roots = append(roots, root)
			}
			return roots
		}, Options{HardLinks: LinksSkip}},
	} {
		all := engines()
		roots := c.trees(t, len(all))
		for engine, m := range all {
			root := roots[0]
			roots = roots[1:]
			t.Run(name+"/"+engine, func(t *testing.T) {
				before := treetest.Read(t, root)
				f := &former{}
				o := c.o
				o.Advanced.Recorder = f
				r, err := tree(t.Context(), root, newLabel, o, as(m))
				adds(t, r)
				if err != nil || !r.Complete || r.Written == 0 || c.o.Trust == TrustUnchanged && r.Unchanged == 0 {
					t.Fatalf("%+v, %v", r, err)
				}
				recorded := map[string]string{}
				for _, p := range f.pages {
					for _, e := range p.Entries {
						recorded[path.Join(p.Dir, e.Name)] = strings.TrimSuffix(e.Label, "\x00")
					}
				}
				now := treetest.Read(t, root)
				for p, label := range before {
					if was, is := recorded[p]; is && was != label || is && label == newLabel {
						t.Errorf("%s had %s, and %s is on record", p, label, was)
					}
					if now[p] == label {
						delete(before, p) // by another name, or left alone
					} else if _, is := recorded[p]; !is && names(t, filepath.Join(root, p)) < 2 {
						t.Errorf("%s had %s, which is not on record", p, label)
					}
				}
				if int64(len(recorded)) != r.Written {
					t.Errorf("%d written, on record are %d", r.Written, len(recorded))
				}
				back, err := Restore(t.Context(), "", f.head, f.all, nil)
				adds(t, back)
				// The root had the new label all the time: it is left sealed.
				if err != nil || back.Complete || back.Skipped != 1 || back.Written+back.Right != r.Written {
					t.Errorf("%+v, %v", back, err)
				}
				now = treetest.Read(t, root)
				for p, label := range before {
					if p != "." && now[p] != label {
						t.Errorf("%s had %s, and has %s", p, label, now[p])
					}
				}
			})
		}
	}
}

// names is how many the file has.
func names(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return uint64(st.Nlink)
}
