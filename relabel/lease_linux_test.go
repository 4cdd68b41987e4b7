// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

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
