// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/undo"
	"github.com/fastlabel/fastlabel/test/treetest"
)

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

// TestShardsMissing: who commits is told which shards have left no proof.
func TestShardsMissing(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), divided)
	not := func(want string) {
		t.Helper()
		r, err := commits(t, root, newLabel, 4)
		if !errors.Is(err, ErrShards) || !strings.Contains(err.Error(), ": "+want+" of 0 to 3") || r.Seen > 0 {
			t.Errorf("%+v, %v", r, err)
		}
		vouching(t, root, oldLabel, newLabel)
	}
	if _, err := commits(t, root, newLabel, 4); !errors.Is(err, ErrShards) || !strings.Contains(err.Error(), "none to this label") {
		t.Error(err)
	}
	for _, i := range []int{2, 0} {
		proves(t, root, newLabel, i, 4)
	}
	not("1, 3")
	stoppedShard(t, root, newLabel, 1, 4, 20)
	not("1, 3")
	for _, i := range []int{1, 3} {
		proves(t, root, newLabel, i, 4)
	}
	stoppedShard(t, root, newLabel, 2, 4, 20)
	not("2") // what it had left does not outlive that
	proves(t, root, newLabel, 2, 4)
	if r, err := commits(t, root, newLabel, 4); err != nil || vouching(t, root, newLabel) != newLabel {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := commits(t, root, newLabel, 4); err != nil || r.Written > 0 {
		t.Errorf("%+v, %v", r, err) // it has the label already
	}
	if r, err := CommitShards(t.Context(), root, newLabel, 4, &Options{Trust: TrustRoot}); err != nil || !r.Trusted {
		t.Errorf("%+v, %v", r, err)
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

// TestShardsFailed: a shard in which something failed leaves no proof, and none that it had
// left before.
func TestShardsFailed(t *testing.T) {
	treetest.Need(t, "root", "ext4")
	root := grow(t, on(t, "ext4"), divided)
	shards(t, root, newLabel, 2)
	broken := filepath.Join(root, "a/b/f007")
	treetest.Set(t, root, "a/b/f007", oldLabel)
	immutable(t, broken, true)
	failed := 0
	for i := range 2 {
		if r, err := shard(t, root, newLabel, i, 2, Options{}); err != nil {
			failed++
			if pathOf(err) != broken || r.Failed != 1 || r.Proved {
				t.Errorf("%+v, %v", r, err)
			}
		}
	}
	if _, err := commits(t, root, newLabel, 2); !errors.Is(err, ErrShards) || failed != 1 {
		t.Errorf("%v, and %d failed", err, failed)
	}
	vouching(t, root, newLabel)
	immutable(t, broken, false)
	shards(t, root, newLabel, 2)
	if _, err := commits(t, root, newLabel, 2); err != nil || vouching(t, root, newLabel) != newLabel {
		t.Error(err)
	}
	// A root that was right is sealed until all have looked.
	proves(t, root, newLabel, 0, 2)
	if l := vouching(t, root, newLabel); l != "" {
		t.Errorf("it vouches for %s", l)
	}
}

// TestShardsVoid: whatever else labels the tree in between, old proofs prove nothing.
func TestShardsVoid(t *testing.T) {
	treetest.Need(t, "root")
	const other = "system_u:object_r:default_t:s0:c7,c8"
	for name, between := range map[string]func(t *testing.T, root string){
		"another label":    func(t *testing.T, root string) { shards(t, root, other, 1); _, _ = commits(t, root, other, 1) },
		"stopped":          func(t *testing.T, root string) { stopped(t, root, other, 50) },
		"another number":   func(t *testing.T, root string) { shards(t, root, newLabel, 3) },
		"a stopped number": func(t *testing.T, root string) { stoppedShard(t, root, newLabel, 0, 2, 20) },
		"chcon":            func(t *testing.T, root string) { treetest.Label(t, root, other) },
		"chcon and a stop": func(t *testing.T, root string) { treetest.Label(t, root, other); stopped(t, root, newLabel, 50) },
		"chcon and a shard": func(t *testing.T, root string) {
			treetest.Label(t, root, other)
			proves(t, root, newLabel, 0, 4)
		},
		"the label by another run": func(t *testing.T, root string) {
			if r, err := Tree(t.Context(), root, newLabel, nil); err != nil || !r.Complete {
				t.Errorf("%+v, %v", r, err)
			}
			noShards(t, root, 4)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for runs that may be at work
			root := grow(t, on(t, "tmpfs"), divided)
			shards(t, root, newLabel, 4)
			between(t, root)
			if _, err := commits(t, root, newLabel, 4); !errors.Is(err, ErrShards) && name != "the label by another run" {
				t.Error(err)
			}
			vouching(t, root, oldLabel, newLabel, other)
			shards(t, root, newLabel, 4)
			if _, err := commits(t, root, newLabel, 4); err != nil || vouching(t, root, newLabel) != newLabel {
				t.Error(err)
			}
		})
	}
}

// TestShardsSame: a run to the same label that is stopped takes nothing from the proofs.
func TestShardsSame(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), divided)
	shards(t, root, newLabel, 4)
	stopped(t, root, newLabel, 50)
	if _, err := commits(t, root, newLabel, 4); err != nil || vouching(t, root, newLabel) != newLabel {
		t.Error(err)
	}
}

// TestShardsAtOnce: shards that share no lock and begin at once, also where another claim
// stands, find one generation. One that does not says so.
func TestShardsAtOnce(t *testing.T) {
	treetest.Need(t, "root")
	const of, rounds = 5, 6
	dir := on(t, "tmpfs")
	var all sync.WaitGroup
	for round := range rounds {
		root := filepath.Join(dir, fmt.Sprint(round))
		treetest.Build(t, root, treetest.Text(t, divided))
		if round%2 == 1 {
			stopped(t, root, "system_u:object_r:default_t:s0", 10)
		}
		all.Go(func() {
			var each sync.WaitGroup
			for i := range of {
				each.Go(func() {
					for {
						r, err := unlocked(t.Context(), root, newLabel, Options{Advanced: Advanced{NoSync: true, Shard: Shard{i, of}}})
						adds(t, r)
						if err == nil && r.Proved {
							return
						}
						if !errors.Is(err, ErrOvertaken) {
							t.Errorf("round %d, shard %d: %+v, %v", round, i, r, err)
							return
						}
					}
				})
			}
			each.Wait()
			for i := 0; i < of; {
				_, err := commits(t, root, newLabel, of)
				if err == nil {
					break
				}
				// A generation came to an end while shards of it had ended.
				proves(t, root, newLabel, i, of)
				i++
			}
			if vouching(t, root, oldLabel, newLabel) != newLabel {
				if _, err := commits(t, root, newLabel, of); err != nil || vouching(t, root, newLabel) != newLabel {
					t.Errorf("round %d: %v", round, err)
				}
			}
		})
	}
	all.Wait()
}

// TestShardsRootChanges: what comes to the root while shards are at work, and is not seen
// by each of them, has the label when they are committed.
func TestShardsRootChanges(t *testing.T) {
	treetest.Need(t, "root")
	long := time.Now().Add(-time.Hour)
	for name, change := range map[string]func(root string, i int) error{
		"a directory": func(root string, i int) error { return fill(filepath.Join(root, fmt.Sprint("new", i))) },
		"a file": func(root string, i int) error {
			return os.WriteFile(filepath.Join(root, fmt.Sprint("new", i)), nil, 0o600)
		},
		"another directory": func(root string, _ int) error {
			_ = os.RemoveAll(filepath.Join(root, "g"))
			return fill(filepath.Join(root, "g"))
		},
		"a rename": func(root string, i int) error {
			return os.Rename(filepath.Join(root, fmt.Sprintf("e%02d", i)), filepath.Join(root, fmt.Sprint("moved", i)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := grow(t, on(t, "ext4"), divided)
			for i := range 4 {
				if err := change(root, i); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(root, long, long); err != nil { // as tar does
					t.Fatal(err)
				}
				proves(t, root, newLabel, i, 4)
			}
			r, err := commits(t, root, newLabel, 4)
			if err != nil || vouching(t, root, newLabel) != newLabel || (name != "a file") != (len(r.Notes) > 0) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	root := grow(t, on(t, "ext4"), divided)
	shards(t, root, newLabel, 2)
	for _, name := range []string{"file", "link"} {
		if err := os.Symlink("nowhere", filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(root, long, long); err != nil {
		t.Fatal(err)
	}
	if r, err := commits(t, root, newLabel, 2); err != nil || r.Written != 3 || vouching(t, root, newLabel) != newLabel {
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

// TestShardsOvertaken: a shard whose root was taken, or committed, leaves no proof, and
// what is true.
func TestShardsOvertaken(t *testing.T) {
	treetest.Need(t, "root")
	const theirs = "system_u:object_r:default_t:s0:c7,c8"
	for _, label := range []string{theirs, newLabel} {
		root := grow(t, on(t, "tmpfs"), divided)
		var once sync.Once
		r, err := shard(t, root, newLabel, 0, 2, Options{Workers: 1, Trace: &Trace{Change: func(string, string, string) {
			once.Do(func() {
				if label == theirs {
					treetest.Set(t, root, ".", theirs)
				} else if r, err := unlocked(t.Context(), root, label, Options{Advanced: Advanced{NoSync: true}}); err != nil {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}}})
		if !errors.Is(err, ErrOvertaken) || r.Proved {
			t.Errorf("%+v, %v", r, err)
		}
		if l := vouching(t, root, theirs, newLabel); l == theirs || label == newLabel && l != newLabel {
			t.Errorf("it vouches for %q", l)
		}
		if _, err := commits(t, root, newLabel, 2); errors.Is(err, ErrShards) != (label == theirs) {
			t.Error(err)
		}
	}
}

// TestShardRestarted: a shard that begins again while all are committed has the commit
// taken back.
func TestShardRestarted(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), divided)
	shards(t, root, newLabel, 2)
	_, err := CommitShards(t.Context(), root, newLabel, 2, &Options{Advanced: Advanced{NoSync: true}, Trace: &Trace{Change: func(string, string, string) {
		if err := unix.Removexattr(root, commit.ProofName(1)); err != nil { // as it does at first
			t.Error(err)
		}
	}}})
	if !errors.Is(err, ErrOvertaken) {
		t.Error(err)
	}
	if l := vouching(t, root, oldLabel, newLabel); l != "" {
		t.Errorf("it vouches for %s", l)
	}
}

// TestShardsRefused: what cannot be proved is refused before anything is written.
func TestShardsRefused(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), divided+"mount g/h01 tmpfs\nfile g/h01/file\n")
	before := treetest.Read(t, root)
	for want, o := range map[string]Options{
		"1 to 32":          {Advanced: Advanced{Shard: Shard{0, 33}}},
		"there is none 3":  {Advanced: Advanced{Shard: Shard{3, 3}}},
		"there is none -1": {Advanced: Advanced{Shard: Shard{-1, 3}}},
		"checked":          {Advanced: Advanced{Shard: Shard{0, 3}}, inner: inner{check: true}},
		"seal":             {Advanced: Advanced{Shard: Shard{0, 3}, NoSeal: true}},
		"record":           {Advanced: Advanced{Shard: Shard{0, 3}, Recorder: recording{func() {}, func() {}}}},
		"everything":       {Advanced: Advanced{Shard: Shard{0, 3}}, Trust: TrustUnchanged},
		"mounted beneath":  {Advanced: Advanced{Shard: Shard{0, 3}}},
	} {
		if r, err := Tree(t.Context(), root, newLabel, &o); err == nil || !strings.Contains(err.Error(), want) || r.Seen > 0 {
			t.Errorf("%s: %+v, %v", want, r, err)
		}
	}
	if _, err := Tree(t.Context(), filepath.Join(root, "f00"), newLabel, &Options{Advanced: Advanced{Shard: Shard{0, 3}}}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	g := Group{Options: Options{Advanced: Advanced{Shard: Shard{0, 3}}}}
	if r, err := g.Tree(t.Context(), root, newLabel, TrustNothing); err == nil {
		t.Errorf("%+v", r)
	}
	if d := treetest.Diff(before, treetest.Read(t, root)); len(d) > 0 {
		t.Errorf("written:\n%s", lines(d))
	}
	o := Options{OneFilesystem: true}
	for i := range 2 {
		if r, err := shard(t, root, newLabel, i, 2, o); err != nil {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if r, err := CommitShards(t.Context(), root, newLabel, 2, &o); err != nil || !r.Complete {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestShardsHistories: after any sequence of shards, complete or stopped, other runs and
// commits the root vouches for nothing that is not so, and all come to an end.
func TestShardsHistories(t *testing.T) {
	treetest.Need(t, "root")
	const other = "system_u:object_r:default_t:s0:c7,c8"
	dir := on(t, "tmpfs")
	var all sync.WaitGroup
	for seed := range uint64(6) {
		root := filepath.Join(dir, fmt.Sprint(seed))
		treetest.Build(t, root, treetest.Text(t, divided))
		all.Go(func() { shardHistory(t, root, rand.New(rand.NewPCG(seed, 1)), newLabel, other) })
	}
	all.Wait()
}

func shardHistory(t *testing.T, root string, rng *rand.Rand, labels ...string) {
	const of = 3
	var did []string
	for range 16 {
		label, i, n := labels[rng.IntN(4)/3], rng.IntN(of), rng.IntN(150)
		what := ""
		switch rng.IntN(10) {
		case 0, 1, 2, 3:
			_, err := shard(t, root, label, i, of, Options{})
			what = fmt.Sprint("shard ", i, " to ", label, ": ", err)
		case 4, 5:
			stoppedShard(t, root, label, i, of, n)
			what = fmt.Sprint("stopped shard ", i, " to ", label, " at ", n)
		case 6:
			stopped(t, root, label, n)
			what = fmt.Sprint("stopped to ", label, " at ", n)
		case 7:
			err := fill(filepath.Join(root, fmt.Sprint("new", rng.IntN(3))))
			// Not if the root vouches: what is created then is nobody's.
			if vouchesFor(t, root, append(slices.Clone(labels), oldLabel)) {
				treetest.Label(t, root, labelOf(t, root))
			}
			what = fmt.Sprint("filled: ", err)
		default:
			_, err := commits(t, root, label, of)
			what = fmt.Sprint("commit to ", label, ": ", err)
			if err != nil && !errors.Is(err, ErrShards) {
				t.Error(err)
			}
		}
		did = append(did, what)
		if vouching(t, root, append(slices.Clone(labels), oldLabel)...); t.Failed() {
			t.Errorf("after\n%s", strings.Join(did, "\n"))
			return
		}
	}
	shards(t, root, labels[0], of)
	if _, err := commits(t, root, labels[0], of); err != nil || vouching(t, root, labels...) != labels[0] {
		t.Error(err)
	}
}

func vouchesFor(t *testing.T, root string, labels []string) bool {
	t.Helper()
	return slices.ContainsFunc(labels, func(l string) bool {
		ok, err := isLabelled(root, l, TrustRoot)
		return ok || err != nil
	})
}

// TestShardsVoidFirst: who writes beneath the root of shards makes their proofs void before,
// also where the seal stays, and where it is stopped.
func TestShardsVoidFirst(t *testing.T) {
	treetest.Need(t, "root", "ext4")
	const other = "system_u:object_r:default_t:s0:c7,c8"
	for name, between := range map[string]func(t *testing.T, root string){
		"restore": func(t *testing.T, root string) {
			h := undo.Header{Label: newLabel, Root: root, Former: undo.Former{Label: oldLabel}}
			ctx, cancel := context.WithCancel(t.Context())
			_, err := Restore(ctx, root, h, func(func(undo.Page, error) bool) { cancel() }, nil)
			if err == nil {
				t.Error("the restore was not stopped")
			}
		},
		"no seal": func(t *testing.T, root string) {
			_, err := Tree(t.Context(), root, other, &Options{Advanced: Advanced{NoSeal: true, NoSync: true}})
			if err == nil {
				t.Error("nothing failed")
			}
		},
		"rules": func(t *testing.T, root string) {
			_, err := Apply(t.Context(), root, Rules{Label: other, From: newLabel}, nil) // the root has its seal
			if err == nil {
				t.Error("nothing failed")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := grow(t, on(t, "ext4"), divided)
			shards(t, root, newLabel, 2)
			immutable(t, filepath.Join(root, "a/b/f007"), true)
			between(t, root)
			immutable(t, filepath.Join(root, "a/b/f007"), false)
			if _, err := commits(t, root, newLabel, 2); !errors.Is(err, ErrShards) {
				t.Error(err)
			}
			vouching(t, root, oldLabel, newLabel, other)
		})
	}
}

// TestShardsWoken: a run to another label that wakes when shards have left their proofs, and
// writes on until it notices, makes them void.
func TestShardsWoken(t *testing.T) {
	treetest.Need(t, "root")
	const other = "system_u:object_r:default_t:s0:c7,c8"
	root := grow(t, on(t, "tmpfs"), divided)
	var once sync.Once
	r, err := unlocked(t.Context(), root, other, Options{Workers: 1, Advanced: Advanced{NoSync: true}, Trace: &Trace{Change: func(string, string, string) {
		once.Do(func() {
			for i := range 2 {
				if r, err := unlocked(t.Context(), root, newLabel, Options{Advanced: Advanced{NoSync: true, Shard: Shard{i, 2}}}); err != nil {
					t.Errorf("%+v, %v", r, err)
				}
			}
		})
	}}})
	if !errors.Is(err, ErrOvertaken) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := commits(t, root, newLabel, 2); !errors.Is(err, ErrShards) {
		t.Error(err)
	}
	vouching(t, root, oldLabel, newLabel, other)
}

// TestShardsCommitEnds: the root gets the label when what came to it since the shards has it,
// as the commit may be killed then. One that fails later can be repeated.
func TestShardsCommitEnds(t *testing.T) {
	treetest.Need(t, "root", "ext4")
	root := grow(t, on(t, "ext4"), divided)
	shards(t, root, newLabel, 2)
	add := func(name string) string {
		path := filepath.Join(root, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Error(err)
		}
		treetest.Set(t, root, name, oldLabel)
		return path
	}
	early, late := add("early"), ""
	immutable(t, early, true)
	if _, err := commits(t, root, newLabel, 2); pathOf(err) != early {
		t.Error(err)
	}
	vouching(t, root, newLabel)
	immutable(t, early, false)
	_, err := CommitShards(t.Context(), root, newLabel, 2, &Options{Trace: &Trace{Change: func(path, _, _ string) {
		if path == root {
			if vouching(t, root, newLabel) != newLabel {
				t.Error("the root has no label yet")
			}
			late = add("late")
			immutable(t, late, true)
		}
	}}})
	if pathOf(err) != late {
		t.Error(err)
	}
	if l := vouching(t, root, oldLabel, newLabel); l != "" {
		t.Errorf("it vouches for %s", l)
	}
	immutable(t, late, false)
	if _, err := commits(t, root, newLabel, 2); err != nil || vouching(t, root, newLabel) != newLabel {
		t.Error(err)
	}
}

// TestShardsOptions: shards that differ in what they leave alone are not committed together.
func TestShardsOptions(t *testing.T) {
	treetest.Need(t, "root")
	for name, o := range map[string]Options{
		"excluded":       {},
		"one filesystem": {OneFilesystem: true},
		"links":          {HardLinks: LinksSkip},
	} {
		root := grow(t, on(t, "tmpfs"), divided)
		if name == "excluded" {
			o.Exclude = []string{filepath.Join(root, "a/b")}
		}
		shards(t, root, newLabel, 2)
		if _, err := CommitShards(t.Context(), root, newLabel, 2, &o); !errors.Is(err, ErrShards) {
			t.Errorf("a commit, %s: %v", name, err)
		}
		r, err := shard(t, root, newLabel, 0, 2, o)
		if err != nil || len(r.Notes) != 1 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if _, err := commits(t, root, newLabel, 2); !errors.Is(err, ErrShards) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := shard(t, root, newLabel, 1, 2, o); err != nil {
			t.Error(err)
		}
		if r, err := CommitShards(t.Context(), root, newLabel, 2, &o); err != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestShardsRenames: a directory that changes its name between two shards, and so its owner,
// has the label when they are committed, with all beneath it.
func TestShardsRenames(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir a\ndir a/b\ndir a/b/c%d x8\nfile a/b/c3/file\nfile a/b/c5/file\n")
	proves(t, root, newLabel, 0, 2)
	for i := range 8 {
		if err := os.Rename(filepath.Join(root, fmt.Sprint("a/b/c", i)), filepath.Join(root, fmt.Sprint("a/b/other", i))); err != nil {
			t.Fatal(err)
		}
	}
	proves(t, root, newLabel, 1, 2)
	if r, err := commits(t, root, newLabel, 2); err != nil || vouching(t, root, newLabel) != newLabel || len(r.Notes) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
