// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/undo"
	"github.com/fastlabel/fastlabel/test/treetest"
)

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
	committed(t, root, newLabel, 2)
	// A root that was right is sealed until all have looked.
	proves(t, root, newLabel, 0, 2)
	silent(t, root, newLabel)
}

// TestShardsVoid: whatever else labels the tree in between, old proofs prove nothing.
func TestShardsVoid(t *testing.T) {
	treetest.Need(t, "root")
	for name, between := range map[string]func(t *testing.T, root string){
		"another label": func(t *testing.T, root string) {
			shards(t, root, otherLabel, 1)
			_, _ = commits(t, root, otherLabel, 1)
		},
		"stopped":          func(t *testing.T, root string) { stopped(t, root, otherLabel, 50) },
		"another number":   func(t *testing.T, root string) { shards(t, root, newLabel, 3) },
		"a stopped number": func(t *testing.T, root string) { stoppedShard(t, root, newLabel, 0, 2, 20) },
		"chcon":            func(t *testing.T, root string) { treetest.Label(t, root, otherLabel) },
		"chcon and a stop": func(t *testing.T, root string) { treetest.Label(t, root, otherLabel); stopped(t, root, newLabel, 50) },
		"chcon and a shard": func(t *testing.T, root string) {
			treetest.Label(t, root, otherLabel)
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
			vouching(t, root, oldLabel, newLabel, otherLabel)
			shards(t, root, newLabel, 4)
			committed(t, root, newLabel, 4)
		})
	}
}

// TestShardsSame: a run to the same label that is stopped takes nothing from the proofs.
func TestShardsSame(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), divided)
	shards(t, root, newLabel, 4)
	stopped(t, root, newLabel, 50)
	committed(t, root, newLabel, 4)
}

// TestShardsOvertaken: a shard whose root was taken, or committed, leaves no proof, and
// what is true.
func TestShardsOvertaken(t *testing.T) {
	treetest.Need(t, "root")
	for _, label := range []string{otherLabel, newLabel} {
		root := grow(t, on(t, "tmpfs"), divided)
		var once sync.Once
		r, err := shard(t, root, newLabel, 0, 2, Options{Workers: 1, Trace: &Trace{Change: func(string, string, string) {
			once.Do(func() {
				if label == otherLabel {
					treetest.Set(t, root, ".", otherLabel)
				} else if r, err := unlocked(t.Context(), root, label, Options{Advanced: Advanced{NoSync: true}}); err != nil {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}}})
		if !errors.Is(err, ErrOvertaken) || r.Proved {
			t.Errorf("%+v, %v", r, err)
		}
		if l := vouching(t, root, otherLabel, newLabel); l == otherLabel || label == newLabel && l != newLabel {
			t.Errorf("it vouches for %q", l)
		}
		if _, err := commits(t, root, newLabel, 2); errors.Is(err, ErrShards) != (label == otherLabel) {
			t.Error(err)
		}
	}
}

// TestShardsHistories: after any sequence of shards, complete or stopped, other runs and
// commits the root vouches for nothing that is not so, and all come to an end.
func TestShardsHistories(t *testing.T) {
	treetest.Need(t, "root")
	dir := on(t, "tmpfs")
	var all sync.WaitGroup
	for seed := range uint64(6) {
		root := filepath.Join(dir, fmt.Sprint(seed))
		treetest.Build(t, root, treetest.Text(t, divided))
		all.Go(func() { shardHistory(t, root, rand.New(rand.NewPCG(seed, 1)), newLabel, otherLabel) })
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
			_, err := Tree(t.Context(), root, otherLabel, &Options{Advanced: Advanced{NoSeal: true, NoSync: true}})
			if err == nil {
				t.Error("nothing failed")
			}
		},
		"rules": func(t *testing.T, root string) {
			_, err := Apply(t.Context(), root, Rules{Label: otherLabel, From: newLabel}, nil) // the root has its seal
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
			unproved(t, root, newLabel, 2)
			vouching(t, root, oldLabel, newLabel, otherLabel)
		})
	}
}

// TestShardsWoken: a run to another label that wakes when shards have left their proofs, and
// writes on until it notices, makes them void.
func TestShardsWoken(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), divided)
	var once sync.Once
	r, err := unlocked(t.Context(), root, otherLabel, Options{Workers: 1, Advanced: Advanced{NoSync: true}, Trace: &Trace{Change: func(string, string, string) {
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
	unproved(t, root, newLabel, 2)
	vouching(t, root, oldLabel, newLabel, otherLabel)
}
