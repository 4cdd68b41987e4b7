// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/commit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// some is a tree of 205 entries.
const some = "dir .\nfile f%02d x40\ndir d%d x4\nfile d0/f%02d x40\nfile d1/f%02d x40\nfile d2/f%02d x40\nfile d3/f%02d x40\n"

// unlocked is Tree where the lock is not shared, as between pods that have a /run
// of their own, or nodes.
func unlocked(ctx context.Context, path, label string, o Options) (Report, error) {
	r := newRelabelling(o, inner{}, path, label)
	return r.execute(ctx, func(ctx context.Context) error {
		defer r.close()
		if err := r.open(ctx, true); err != nil {
			return err
		}
		c, err := r.begin(ctx)
		if err != nil {
			return err
		}
		if err = r.walk(ctx, r.root, &r.top, nil); err == nil {
			err = r.submounts(ctx)
		}
		return r.done(c.End(ctx, err))
	})
}

// TestTwoRuns: of two runs to different labels that do not see each other's lock
// one says done at most, and then it is so.
func TestTwoRuns(t *testing.T) {
	treetest.Need(t, "root")
	const rounds = 12
	labels := [2]string{newLabel, "system_u:object_r:default_t:s0:c7,c8"}
	dir := on(t, "tmpfs")
	var mu sync.Mutex
	var all sync.WaitGroup
	// Few at a time: a run that the machine holds up for longer than the other
	// waits writes on beneath what the other has committed.
	slots := make(chan struct{}, 3)
	done, failed := 0, 0
	for round := range rounds {
		from := []string{"default label=" + oldLabel + "\n", ""}[round%2]
		root := filepath.Join(dir, fmt.Sprint(round))
		treetest.Build(t, root, treetest.Text(t, from+some))
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			var reports [2]Report
			var errs [2]error
			var both sync.WaitGroup
			var after atomic.Bool // one had been committed when the other began
			for i, label := range labels {
				both.Go(func() {
					reports[i], errs[i] = unlocked(t.Context(), root, label, Options{Workers: 1 + round%3, Trace: &Trace{Change: func(path, from, _ string) {
						if path == root && from == labels[1-i] {
							after.Store(true)
						}
					}}})
				})
			}
			both.Wait()
			have := treetest.Read(t, root)
			finished := 0
			for i, label := range labels {
				adds(t, reports[i])
				wrong := 0
				for _, l := range have {
					if l != label {
						wrong++
					}
				}
				switch {
				case errs[i] == nil && reports[i].Complete:
					if finished++; wrong > 0 && (!after.Load() || wrong < len(have)) {
						t.Errorf("round %d: %s is said to be done, and %d of %d have another; the other run: %v", round, label, wrong, len(have), errs[1-i])
					}
				case !errors.Is(errs[i], ErrOvertaken):
					t.Errorf("round %d: %+v, %v", round, reports[i], errs[i])
				case wrong > 0 && have["."] == label:
					t.Errorf("round %d: the root has %s, and %d have not", round, label, wrong)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if done += finished; finished > 1 && !after.Load() {
				t.Errorf("round %d: both are done", round)
			}
			failed += 2 - finished
		})
	}
	all.Wait()
	if done+failed != 2*rounds || failed == 0 {
		t.Errorf("%d done, %d not: that shows little", done, failed)
	}
}

// TestOvertakenSoon: a run of which the root was taken stops on the way.
func TestOvertakenSoon(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\nfile f%05d x9000\n")
	asked := 0
	r, err := Tree(t.Context(), root, newLabel, &Options{Workers: 1, Throttle: func(_ context.Context, n int) error {
		if asked += n; asked == n {
			treetest.Set(t, root, ".", "system_u:object_r:default_t:s0:c7,c8")
			time.Sleep(commit.Every) // then it is looked at again
		}
		return nil
	}})
	adds(t, r)
	if !errors.Is(err, ErrOvertaken) || r.Written > 100 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestClaimNoRoom: that the owner's attributes leave no room for a claim is said, also where an
// interrupted run has left a shorter one.
func TestClaimNoRoom(t *testing.T) {
	treetest.Need(t, "root", "ext4")
	dir := on(t, "ext4")
	for name, c := range map[string]struct {
		claim string
		full  bool
	}{
		"room":        {},
		"full":        {full: true},
		"interrupted": {claim: "version=2 want=" + oldLabel + " seal= former=", full: true},
	} {
		root := filepath.Join(dir, name)
		treetest.Build(t, root, treetest.Text(t, "dir .\nfile a\n"))
		treetest.Set(t, root, ".", "unconfined_u:object_r:container_file_t:s0:c1001,c1003,c1005") // longer than a seal
		if c.claim != "" {
			if err := unix.Setxattr(root, commit.ClaimName, []byte(c.claim), 0); err != nil {
				t.Fatal(err)
			}
		}
		for n := 1024; c.full && n > 0; n /= 2 {
			for i := 0; unix.Setxattr(root, fmt.Sprintf("user.%d.%d", n, i), make([]byte, n), 0) == nil; i++ {
			}
		}
		told := ""
		r, err := Tree(t.Context(), root, newLabel, &Options{Trace: &Trace{Note: func(text string) { told += text }}})
		if err != nil || !r.Complete || strings.Contains(told, "no room for the attribute") != c.full {
			t.Errorf("%s: %+v, %v, %q", name, r, err, told)
		}
	}
}

// TestSlowLook: a run whose look at its root takes seconds writes nothing until that has
// ended, for another run that has taken the root may be at work by then.
func TestSlowLook(t *testing.T) {
	treetest.Need(t, "root", "seccomp")
	const workers, files = 8, 50
	const all = 1 + workers*(1+files)
	const tries = 5 // a worker may be about to write, and not be run for half a second
	for try := 1; ; try++ {
		root := mkdir(t, on(t, "tmpfs"), "root")
		for i := range workers {
			flat(t, filepath.Join(root, strconv.Itoa(i)), files)
		}
		soon, late, claimed := 0, 0, time.Time{}
		cmd := exec.Command(treetest.Command(t), "-T", strconv.Itoa(workers), "--max-rate", "80", "--label", newLabel, root)
		end := treetest.Supervise(t, cmd, []int{unix.SYS_FGETXATTR}, func(treetest.Notice) (a treetest.Answer) {
			switch _, err := unix.Getxattr(root, commit.ClaimName, make([]byte, 4096)); {
			case err != nil || late > 0:
			case claimed.IsZero():
				claimed = time.Now()
			case time.Since(claimed) > 2*commit.Every:
				time.Sleep(commit.Noticed + commit.Every)
				soon = len(bearing(t, root, newLabel))
				time.Sleep(2 * commit.Noticed)
				late = len(bearing(t, root, newLabel))
			}
			return a
		})
		if has := len(bearing(t, root, newLabel)); end.Code != 0 || has != all || late == 0 || late >= all {
			t.Fatalf("%d of %d have the label, %d of them then: %+v", has, all, late, end)
		}
		if late == soon {
			return
		}
		if t.Logf("%d entries were written", late-soon); try == tries {
			t.Fatal("so it was each time")
		}
	}
}
