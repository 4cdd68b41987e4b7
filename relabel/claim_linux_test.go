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
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/commit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

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

// TestTwoRuns: of two runs to different labels that do not see each other's lock the one whose root
// was taken stops before it writes again, and seals the root for what it has written. The other's
// label is that of all beneath.
func TestTwoRuns(t *testing.T) {
	treetest.Need(t, "root")
	for _, from := range []string{"default label=" + oldLabel + "\n", ""} {
		for _, files := range []int{40, 4000} { // a small tree and one with workers
			root := grow(t, on(t, "tmpfs"), from+fmt.Sprintf("dir .\nfile f%%d x%d\ndir d\nfile d/f%%d x40\n", files))
			const label = "system_u:object_r:default_t:s0:c7,c8"
			var other Report
			var failed error
			asked := 0
			r, err := unlocked(t.Context(), root, newLabel, Options{Workers: 1, Throttle: func(_ context.Context, n int) error {
				if was := asked; was < 20 {
					if asked += n; asked >= 20 {
						other, failed = unlocked(t.Context(), root, label, Options{})
					}
				}
				return nil
			}})
			adds(t, r)
			if !errors.Is(err, ErrOvertaken) || r.Complete || r.Written > 20 {
				t.Errorf("%d files: %+v, %v", files, r, err)
			}
			all, has := len(treetest.Read(t, root)), len(bearing(t, root, label))
			if ok, err := isLabelled(root, label, SkipRoot); failed != nil || !other.Complete || has != all-1 || ok || err != nil {
				t.Errorf("%d files: %d of %d have the other label, trusted: %t, %v; %+v, %v", files, has, all, ok, err, other, failed)
			}
		}
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
			treetest.Must(t, unix.Setxattr(root, commit.ClaimName, []byte(c.claim), 0))
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
