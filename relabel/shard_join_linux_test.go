// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

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

// slowSeal runs the first of two shards, and calls between before it writes its seal.
func slowSeal(t *testing.T, root string, between func()) treetest.Ended {
	t.Helper()
	cmd := exec.Command(treetest.Command(t), "--label", newLabel, "--shard", "0/2", root)
	end := treetest.Supervise(t, cmd, []int{unix.SYS_FSETXATTR}, func(n treetest.Notice) treetest.Answer {
		if n.Nth == 2 { // after the claim
			between()
		}
		return treetest.Answer{}
	})
	if end.Calls < 2 {
		t.Fatalf("%+v", end)
	}
	return end
}

// TestShardsSlowSeal: a shard that comes while the first one's seal is being written, which
// a network disk may take seconds for, waits for it: nothing of the first one is void.
func TestShardsSlowSeal(t *testing.T) {
	treetest.Need(t, "root", "seccomp")
	for name, before := range map[string]func(t *testing.T, root string){
		"a label":        func(t *testing.T, root string) { treetest.Set(t, root, ".", oldLabel) },
		"no label":       func(t *testing.T, root string) { treetest.Set(t, root, ".", "") },
		"a seal":         func(t *testing.T, root string) { stopped(t, root, newLabel, 50) },
		"another's seal": func(t *testing.T, root string) { stoppedShard(t, root, otherLabel, 0, 2, 20) },
		"another number": func(t *testing.T, root string) { stoppedShard(t, root, newLabel, 0, 3, 20) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for seconds
			root := grow(t, on(t, "tmpfs"), divided)
			before(t, root)
			second := make(chan error, 1)
			first := slowSeal(t, root, func() {
				go func() {
					r, err := unlocked(t.Context(), root, newLabel, Options{Advanced: Advanced{Shard: Shard{1, 2}}})
					if err == nil && len(r.Notes) > 0 {
						err = fmt.Errorf("%q", r.Notes)
					}
					second <- err
				}()
				time.Sleep(2 * commit.Noticed)
			})
			if err := <-second; err != nil || first.Code != 0 {
				t.Errorf("%v, and the first: %+v", err, first)
			}
			committed(t, root, newLabel, 2)
		})
	}
}

// TestShardsGivenUp: a shard that is stopped while it waits for the seal of the first takes
// nothing from that.
func TestShardsGivenUp(t *testing.T) {
	treetest.Need(t, "root", "seccomp")
	root := grow(t, on(t, "tmpfs"), divided)
	first := slowSeal(t, root, func() {
		ctx, stop := context.WithTimeout(t.Context(), 2*commit.Every)
		defer stop()
		if r, err := unlocked(ctx, root, newLabel, Options{Advanced: Advanced{Shard: Shard{1, 2}}}); !errors.Is(err, context.DeadlineExceeded) || len(r.Notes) > 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	if first.Code != 0 || strings.Contains(first.Stderr, "void") {
		t.Errorf("%+v", first)
	}
	proves(t, root, newLabel, 1, 2)
	committed(t, root, newLabel, 2)
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
