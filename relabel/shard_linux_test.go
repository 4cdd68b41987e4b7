// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// otherLabel is that of another run.
const otherLabel = "system_u:object_r:default_t:s0:c7,c8"

// divided is a tree of 377 entries in which every level has some.
const divided = "default label=" + oldLabel + `
dir .
file f%02d x20
dir a
file a/f%02d x40
dir a/b
file a/b/f%03d x200
dir a/b/c
dir a/b/c/d
file a/b/c/d/f%02d x20
dir e%02d x30
link e07/link ../a
fifo e08/fifo
dir g
dir g/h%02d x30
dir g/h03/i
file g/h03/i/f%02d x30
`

const entriesDivided = 1 + 20 + 1 + 40 + 1 + 200 + 2 + 20 + 30 + 2 + 1 + 30 + 1 + 30

// shard runs one of so many.
func shard(t *testing.T, root, label string, i, of int, o Options) (Report, error) {
	t.Helper()
	o.Advanced.Shard = Shard{i, of}
	r, err := Tree(t.Context(), root, label, &o)
	adds(t, r)
	if r.Complete {
		t.Errorf("shard %d of %d says that all is complete: %+v", i, of, r)
	}
	return r, err
}

// proves runs one, which has to succeed.
func proves(t *testing.T, root, label string, i, of int) {
	t.Helper()
	if r, err := shard(t, root, label, i, of, Options{}); err != nil || !r.Proved {
		t.Errorf("shard %d of %d: %+v, %v", i, of, r, err)
	}
}

// shards runs all of them.
func shards(t *testing.T, root, label string, of int) {
	t.Helper()
	for i := range of {
		proves(t, root, label, i, of)
	}
}

// commits commits so many.
func commits(t *testing.T, root, label string, of int) (Report, error) {
	t.Helper()
	r, err := CommitShards(t.Context(), root, label, of, nil)
	adds(t, r)
	if r.Proved || r.Complete != (err == nil) {
		t.Errorf("%+v, %v", r, err)
	}
	return r, err
}

// committed commits so many, after which everything has the label.
func committed(t *testing.T, root, label string, of int) Report {
	t.Helper()
	r, err := commits(t, root, label, of)
	if err != nil || vouching(t, root, label) != label {
		t.Errorf("%+v, %v", r, err)
	}
	return r
}

// unproved fails the test if so many can be committed.
func unproved(t *testing.T, root, label string, of int) {
	t.Helper()
	if _, err := commits(t, root, label, of); !errors.Is(err, ErrShards) {
		t.Error(err)
	}
}

// silent fails the test if the root vouches for one of the labels.
func silent(t *testing.T, root string, labels ...string) {
	t.Helper()
	if l := vouching(t, root, labels...); l != "" {
		t.Errorf("it vouches for %s", l)
	}
}

// vouching fails the test if the root vouches for a label that not everything has.
func vouching(t *testing.T, root string, labels ...string) (label string) {
	t.Helper()
	all := treetest.Read(t, root)
	for _, l := range labels {
		ok, err := isLabelled(root, l, TrustRoot)
		if err != nil {
			t.Error(err)
		}
		if !ok {
			continue
		}
		label = l
		for p, has := range all {
			if has != label {
				t.Errorf("the root vouches for %s, and %s has %s", label, p, has)
			}
		}
	}
	return label
}

// noShards fails the test if anything is left that shards have left on the root.
func noShards(t *testing.T, root string, of int) {
	t.Helper()
	names := []string{commit.ClaimName}
	for i := range of {
		names = append(names, commit.ProofName(i))
	}
	for _, name := range names {
		if _, err := unix.Getxattr(root, name, nil); !errors.Is(err, unix.ENODATA) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
}

// TestShards: the shards of a tree have all of it, each entry once, count together what
// one run counts, and leave the root sealed until they are committed.
func TestShards(t *testing.T) {
	treetest.Need(t, "root")
	half := treetest.Load(t, "half")
	treetest.Each(t, func(t *testing.T, dir string) {
		for name, tree := range map[string]*treetest.Tree{"half": half, "divided": treetest.Text(t, divided)} {
			whole := mkdir(t, dir, name)
			treetest.Build(t, whole, tree)
			one, err := Tree(t.Context(), whole, newLabel, &Options{Advanced: Advanced{Exact: true, NoSync: true}})
			if err != nil {
				t.Fatal(err)
			}
			for _, of := range []int{1, 3, 8} {
				for _, workers := range []int{1, 4} {
					root := mkdir(t, dir, fmt.Sprint(name, of, workers))
					treetest.Build(t, root, tree)
					countShards(t, root, of, workers, one)
				}
			}
		}
	})
}

func countShards(t *testing.T, root string, of, workers int, one Report) {
	t.Helper()
	var sum Report
	add := func(r Report) {
		sum.Seen, sum.Written, sum.Right, sum.Skipped = sum.Seen+r.Seen, sum.Written+r.Written, sum.Right+r.Right, sum.Skipped+r.Skipped
	}
	var mu sync.Mutex
	wrote := map[string]int{}
	change := &Trace{Change: func(path, _, _ string) {
		mu.Lock()
		defer mu.Unlock()
		wrote[path]++
	}}
	most := int64(0)
	for i := range of {
		if i > 0 {
			_, err := commits(t, root, newLabel, of)
			if !errors.Is(err, ErrShards) {
				t.Errorf("%d of %d: %v", i, of, err)
			}
		}
		r, err := shard(t, root, newLabel, i, of, Options{Workers: workers, Trace: change, Advanced: Advanced{Exact: true}})
		if err != nil || !r.Proved || r.Interrupted != "" {
			t.Errorf("shard %d of %d: %+v, %v", i, of, r, err)
		}
		if l := vouching(t, root, oldLabel, newLabel); l != "" {
			t.Errorf("after shard %d of %d the root vouches for %s", i, of, l)
		}
		add(r)
		most = max(most, r.Seen)
	}
	r, err := commits(t, root, newLabel, of)
	if err != nil || r.Seen != 1 || len(r.Notes) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	add(r)
	if sum.Seen != one.Seen || sum.Written+sum.Right != one.Written+one.Right || sum.Skipped != one.Skipped {
		t.Errorf("%d shards: %+v, one run: %+v", of, sum, one)
	}
	for path, n := range wrote {
		if n != 1 {
			t.Errorf("%s was written %d times", path, n)
		}
	}
	if l := vouching(t, root, newLabel); l != newLabel {
		t.Errorf("the root vouches for %q", l)
	}
	if of == 8 && most > one.Seen/2 {
		t.Errorf("one of 8 had %d of %d", most, one.Seen)
	}
	noShards(t, root, of)
}

// TestShardsWays: shards divide a tree by whatever way the kernel leads them.
func TestShardsWays(t *testing.T) {
	treetest.Need(t, "root")
	for name, deny := range map[string]func(*capabilities){
		"as it is":   func(*capabilities) {},
		"no clone":   func(c *capabilities) { c.clones = false },
		"no openat2": func(c *capabilities) { c.clones, c.openat2 = false, false },
		"served":     func(c *capabilities) { c.served = true },
		"gathered":   func(c *capabilities) { c.kernel.Sorting.From = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			root := grow(t, on(t, "ext4"), divided)
			seen := int64(1)
			for i := range 3 {
				r, err := tree(t.Context(), root, newLabel, Options{Advanced: Advanced{Shard: Shard{i, 3}, NoSync: true}}, func() capabilities {
					c := probe()
					deny(&c)
					return c
				})
				if seen += r.Seen; err != nil || !r.Proved {
					t.Errorf("%+v, %v", r, err)
				}
			}
			if _, err := commits(t, root, newLabel, 3); err != nil || seen != entriesDivided || vouching(t, root, newLabel) != newLabel {
				t.Errorf("%v, %d entries", err, seen)
			}
		})
	}
}

// TestShardsGathered: directories that shards divide, and that are too large for one
// buffer, look the same to each: nothing is read again when they are committed.
func TestShardsGathered(t *testing.T) {
	treetest.Need(t, "root", "ext4")
	root := grow(t, on(t, "ext4"), "default label="+oldLabel+"\ndir .\ndir a\nfile a/f%04d x3000\ndir a/d%04d x2000\n")
	for i := range 3 {
		r, err := tree(t.Context(), root, newLabel, Options{Workers: 2, Advanced: Advanced{Shard: Shard{i, 3}, NoSync: true}}, func() capabilities {
			c := probe()
			c.kernel.Sorting.From = 1
			return c
		})
		if err != nil || !r.Proved {
			t.Errorf("%+v, %v", r, err)
		}
	}
	r, err := commits(t, root, newLabel, 3)
	if err != nil || r.Seen != 1 || len(r.Notes) > 0 || vouching(t, root, newLabel) != newLabel {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestOrderOfShards: a proof is on disk after all that it says, and before it the root's seal
// and that there is no proof yet.
func TestOrderOfShards(t *testing.T) {
	treetest.Need(t, "root", "strace")
	root := grow(t, on(t, "ext4"), divided)
	calls, out, err := treetest.TraceCmd(t, child(t, "shards", root))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var marks []string
	for _, c := range treetest.After(calls, root) {
		mark := ""
		switch {
		case !c.OK():
		case c.Name == "fsetxattr" && strings.Contains(c.Args[1], commit.ClaimName):
			mark = "claim"
		case c.Name == "fsetxattr" && strings.Contains(c.Args[1], commit.ProofName(0)), c.Name == "fsetxattr" && strings.Contains(c.Args[1], commit.ProofName(1)):
			mark = "proof"
		case c.Class() == treetest.WriteAttr && c.Name == "fsetxattr" && ownRoot(c.Dir, root):
			mark = "root"
		case c.Class() == treetest.WriteAttr:
			mark = "entries"
		case c.Name == "syncfs" || c.Name == "fsync":
			mark = c.Name
		}
		if mark != "" && (mark != "entries" || marks[len(marks)-1] != mark) {
			marks = append(marks, mark)
		}
	}
	const one = "proof fsync entries syncfs proof fsync"
	if have := fmt.Sprint(marks); have != "[claim root fsync "+one+" "+one+" syncfs root fsync]" {
		t.Errorf("%s\n%s", have, out)
	}
}

// stoppedShard runs a shard that is stopped when it has met so many entries, or has ended
// by then.
func stoppedShard(t *testing.T, root, label string, i, of, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	asked := 0
	r, err := Tree(ctx, root, label, &Options{Workers: 1, Advanced: Advanced{NoSync: true, Shard: Shard{i, of}}, Throttle: func(ctx context.Context, entries int) error {
		mu.Lock()
		defer mu.Unlock()
		if asked += entries; asked > n {
			cancel()
			<-ctx.Done()
		}
		return nil
	}})
	adds(t, r)
	if (err == nil) != r.Proved {
		t.Errorf("%+v, %v", r, err)
	}
}

// fill makes a directory with entries that would be of different shards.
func fill(dir string) error {
	for i := range 10 {
		at := filepath.Join(dir, fmt.Sprint("sub", i))
		if err := os.MkdirAll(at, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(at, "file"), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}
